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

// The types of the roots seen. Their references are kept: Hot::root_type is never a type that is gone.
std::array<PyTypeObject*, 16> g_root_types{};
size_t g_root_type_count = 0;

PyObject* g_module_type = nullptr;

// The other classes with our slot, each kept; those beyond it have the slot for good.
std::array<PyTypeObject*, 512> g_idle_types{};
size_t g_idle_type_count = 0;
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

bool is_root_type(const PyTypeObject* type) {
  const auto end = g_root_types.begin() + g_root_type_count;
  return std::find(g_root_types.begin(), end, type) != end;
}

void remember_root_type(PyTypeObject* type) {
  if (is_root_type(type)) return;
  Py_INCREF(type);
  if (g_root_type_count == g_root_types.size()) return;  // kept all the same
  g_root_types[g_root_type_count++] = type;
}

void remember_idle_type(PyTypeObject* type) {
  const auto end = g_idle_types.begin() + g_idle_type_count;
  if (g_idle_type_count == g_idle_types.size() || std::find(g_idle_types.begin(), end, type) != end)
    return;
  Py_INCREF(type);
  g_idle_types[g_idle_type_count++] = type;
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
  remember_idle_type(type);
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
  for (size_t i = 0; i < g_idle_type_count; ++i)
    if (g_idle_types[i]->tp_call == g_original) g_idle_types[i]->tp_call = hooked_call;
  g_all_in = true;
}

void take_idle_slots_out() {
  if (g_root_type_count == g_root_types.size()) return;  // there may be others that are not noted
  for (size_t i = 0; i < g_idle_type_count; ++i) {
    PyTypeObject* type = g_idle_types[i];
    if (type->tp_call == hooked_call && !is_root_type(type)) type->tp_call = g_original;
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
