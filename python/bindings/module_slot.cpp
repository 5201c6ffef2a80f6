#include "module_slot.h"

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

struct Known {
  uintptr_t module;
  bool root;
};
std::array<Known, 64> g_known{};

bool g_compiled_ever = false;

Known& known_slot(PyObject* module) {
  return g_known[(reinterpret_cast<uintptr_t>(module) >> 4) % g_known.size()];
}

void remember_type(PyTypeObject* type) {
  for (size_t i = 0; i < g_root_type_count; ++i)
    if (g_root_types[i] == type) return;
  Py_INCREF(type);
  if (g_root_type_count == g_root_types.size()) return;  // kept all the same
  g_root_types[g_root_type_count++] = type;
}

STEPSCOPE_HOT_CODE bool is_root(PyObject* module) {
  if (module == hot().root) return true;
  Known& slot = known_slot(module);
  const auto id = reinterpret_cast<uintptr_t>(module);
  if (slot.module != id) {
    PyObject* answer = call_quietly(session().classify, module);
    slot = {id, answer == Py_True};
    Py_XDECREF(answer);
    if (slot.root) remember_type(Py_TYPE(module));
  }
  if (!slot.root) return false;
  hot().root = module;
  hot().root_type = Py_TYPE(module);
  return true;
}

bool training_flag(PyObject* module) {
  static PyObject* const training = interned("training");
  // Modules keep it in their dict; nn.Module's __getattr__ makes the way around it a long one.
  PyObject** dict = _PyObject_GetDictPtr(module);
  PyObject* flag =
      dict == nullptr || *dict == nullptr ? nullptr : PyDict_GetItemWithError(*dict, training);
  if (flag != nullptr) return flag == Py_True;
  PyErr_Clear();
  return is_true(module, training, true);
}

STEPSCOPE_HOT_CODE bool in_training_mode(PyObject* module) {
  if (!hot().mode_unsure) return true;
  const bool training = training_flag(module);
  hot().mode_unsure = !training;
  return training;
}

STEPSCOPE_HOT_CODE PyObject* hooked_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  if (nesting.root || !enter_forward(self, false)) return g_original(self, args, kwargs);
  PyObject* result = g_original(self, args, kwargs);
  leave_forward(result == nullptr);
  return result;
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

void install_slot(PyObject* object) {
  if (!PyType_Check(object)) return;
  auto* type = reinterpret_cast<PyTypeObject*>(object);
  if (g_original == nullptr) g_original = type->tp_call;  // nn.Module comes first
  if (type->tp_call == g_original) type->tp_call = hooked_call;
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
