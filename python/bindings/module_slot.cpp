#include "module_slot.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "base/hot.h"
#include "session.h"

namespace stepscope::bindings {
namespace {

// slot_tp_call of CPython: what every type with a Python __call__ has here. One function for all of them.
STEPSCOPE_HOT_DATA constinit ternaryfunc g_original = nullptr;

PyObject* class_gone(PyObject*, PyObject* weak);
PyMethodDef g_class_gone_def = {"class_gone", class_gone, METH_O, nullptr};

PyObject* weak_reference(PyTypeObject* type) {
  static PyObject* const callback = PyCFunction_New(&g_class_gone_def, nullptr);
  PyObject* weak =
      callback == nullptr ? nullptr : PyWeakref_NewRef(reinterpret_cast<PyObject*>(type), callback);
  if (weak == nullptr) PyErr_Clear();
  return weak;
}

// Classes, as long as they live: a weak reference calls class_gone(), and keeps none of them alive.
template <size_t N>
struct Classes {
  struct Entry {
    PyTypeObject* type;
    PyObject* weak;
  };
  std::array<Entry, N> entry{};
  size_t count = 0;

  bool full() const { return count == N; }
  bool has(const PyTypeObject* type) const {
    const auto end = entry.begin() + count;
    return std::find_if(entry.begin(), end, [&](const Entry& e) { return e.type == type; }) != end;
  }
  void add(PyTypeObject* type) {
    if (full() || has(type)) return;
    PyObject* weak = weak_reference(type);
    if (weak != nullptr) entry[count++] = {type, weak};
  }
  PyTypeObject* remove(PyObject* weak) {
    for (size_t i = 0; i < count; ++i)
      if (entry[i].weak == weak) {
        PyTypeObject* type = entry[i].type;
        entry[i] = entry[--count];
        Py_DECREF(weak);
        return type;
      }
    return nullptr;
  }
};

Classes<16> g_root_types;   // of the roots seen
Classes<512> g_idle_types;  // the others with our slot; those beyond it have the slot for good
PyObject* g_module_type = nullptr;
bool g_all_in = false;

struct Known {
  uintptr_t module;
  bool root;
};
std::array<Known, 64> g_known{};

bool g_compiled_ever = false;

Known& known_slot(PyObject* module) {
  return g_known[(reinterpret_cast<uintptr_t>(module) >> 4) % g_known.size()];
}

PyObject* class_gone(PyObject*, PyObject* weak) {
  if (g_idle_types.remove(weak) == nullptr) {
    const PyTypeObject* type = g_root_types.remove(weak);
    if (type != nullptr && hot().root_type == type) hot().root_type = nullptr;
  }
  Py_RETURN_NONE;
}

void remember_root_type(PyTypeObject* type) {
  if (g_root_types.has(type)) return;
  if (g_root_types.full())
    Py_INCREF(type);  // for ever: Hot::root_type is never a class that is gone
  g_root_types.add(type);
}

STEPSCOPE_HOT_CODE bool is_root(PyObject* module) {
  if (module == hot().root) return true;
  Known& slot = known_slot(module);
  const auto id = reinterpret_cast<uintptr_t>(module);
  if (slot.module != id) {
    PyObject* answer = call_quietly(session().classify, module);
    slot = {id, answer == Py_True};
    Py_XDECREF(answer);
    if (slot.root) remember_root_type(Py_TYPE(module));
  }
  if (!slot.root) return false;
  hot().root = module;
  hot().root_type = Py_TYPE(module);
  return true;
}

STEPSCOPE_HOT_CODE bool in_training_mode(PyObject* module) {
  if (!hot().mode_unsure) return true;
  static PyObject* const name = interned("training");
  const bool training = flag_of(module, name, true);
  hot().mode_unsure = !training;
  return training;
}

STEPSCOPE_HOT_CODE PyObject* hooked_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  if (nesting.root || !enter_forward(self, false)) return g_original(self, args, kwargs);
  PyObject* result = g_original(self, args, kwargs);
  leave_forward(result == nullptr);
  return result;
}

void install_slot(PyTypeObject* type) {
  if (g_original == nullptr) g_original = type->tp_call;  // nn.Module comes first
  if (type->tp_call != g_original) return;
  type->tp_call = hooked_call;
  g_idle_types.add(type);
  g_all_in = true;
  hot().until_look = Hot::kWatched;
}

}  // namespace

STEPSCOPE_HOT_CODE bool enter_forward(PyObject* module, bool always_training) {
  if (nesting.root || nesting.backwards > 0 || compiling() || !awake()) return false;
  if (module != nullptr && !is_root(module)) return false;
  const bool grad_on = grad_enabled();
  nesting.root = true;
  hot().forward_seen |= grad_on;
  rec().forward_begin(grad_on, always_training || module == nullptr || in_training_mode(module));
  return true;
}

STEPSCOPE_HOT_CODE void leave_forward(bool raised) {
  nesting.root = false;
  rec().forward_end(raised);
}

void set_module_type(PyObject* type) { g_module_type = type; }

void watch_all_classes() {
  if (g_module_type == nullptr) return;
  PyObject* seen = PySet_New(nullptr);
  PyObject* waiting = PyList_New(0);
  bool fine = seen != nullptr && waiting != nullptr && PyList_Append(waiting, g_module_type) == 0;
  for (Py_ssize_t at = 0; fine && at < PyList_GET_SIZE(waiting); ++at) {
    PyObject* type = PyList_GET_ITEM(waiting, at);
    const int known = PySet_Contains(seen, type);
    if (known > 0) continue;
    fine = known == 0 && PySet_Add(seen, type) == 0 && PyType_Check(type);
    if (!fine) break;
    install_slot(reinterpret_cast<PyTypeObject*>(type));
    // type's own method: a metaclass may have hidden it
    PyObject* below =
        PyObject_CallMethod(reinterpret_cast<PyObject*>(&PyType_Type), "__subclasses__", "O", type);
    fine = below != nullptr && PyList_SetSlice(waiting, PY_SSIZE_T_MAX, PY_SSIZE_T_MAX, below) == 0;
    Py_XDECREF(below);
  }
  if (!fine) PyErr_Clear();
  Py_XDECREF(waiting);
  Py_XDECREF(seen);
}

bool slots_are_all_in() { return g_all_in; }

void put_slots_in() {
  for (size_t i = 0; i < g_idle_types.count; ++i) {
    PyTypeObject* type = g_idle_types.entry[i].type;
    if (type->tp_call == g_original) type->tp_call = hooked_call;
  }
  g_all_in = true;
}

void take_idle_slots_out() {
  if (g_root_types.full()) return;  // there may be others that are not noted
  for (size_t i = 0; i < g_idle_types.count; ++i) {
    PyTypeObject* type = g_idle_types.entry[i].type;
    if (type->tp_call == hooked_call && !g_root_types.has(type)) type->tp_call = g_original;
  }
  g_all_in = false;
}

bool slot_was_reset() {
  return hot().root_type != nullptr && hot().root_type->tp_call == g_original;
}

void forget_modules() {
  g_known = {};
  hot().root = nullptr;
  hot().mode_unsure = true;
}

void forget_module(uintptr_t id) {
  if (reinterpret_cast<uintptr_t>(hot().root) == id) hot().root = nullptr;
  for (Known& slot : g_known)
    if (slot.module == id) slot = {};
}

void begin_compile() {
  g_compiled_ever = true;
  if (hot().compiles.fetch_add(1) == 0 && awake())
    rec().begin(static_cast<uint8_t>(Phase::kCompile));
}

void end_compile() {
  if (hot().compiles.load() == 0) return;
  if (hot().compiles.fetch_sub(1) == 1 && awake()) rec().end(static_cast<uint8_t>(Phase::kCompile));
}

bool compiled_ever() { return g_compiled_ever; }

bool compiling() { return hot().compiles.load(std::memory_order_relaxed) > 0; }

}  // namespace stepscope::bindings
