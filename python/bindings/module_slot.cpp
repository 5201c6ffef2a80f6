#include "module_slot.h"

#include <array>
#include <atomic>

#include "session.h"

namespace stepscope::bindings {
namespace {

// slot_tp_call of CPython: what every type with a Python __call__ has here. One function for all of them.
ternaryfunc g_original = nullptr;

// The types of the roots seen, for the pointer test. Their references are kept: a type that is gone is never read.
std::array<PyTypeObject*, 16> g_root_types{};
size_t g_root_type_count = 0;

struct Known {
  uintptr_t module;
  bool root;
};
std::array<Known, 64> g_known{};

thread_local bool inside_root = false;
std::atomic<int> g_compiles{0};
bool g_compiled_ever = false;
std::atomic<uint64_t> g_forwards{0};

Known& known_slot(PyObject* module) {
  return g_known[(reinterpret_cast<uintptr_t>(module) >> 4) % g_known.size()];
}

void remember_type(PyTypeObject* type) {
  for (size_t i = 0; i < g_root_type_count; ++i)
    if (g_root_types[i] == type) return;
  if (g_root_type_count == g_root_types.size()) return;
  Py_INCREF(type);
  g_root_types[g_root_type_count++] = type;
}

bool is_root(PyObject* module) {
  Known& slot = known_slot(module);
  const auto id = reinterpret_cast<uintptr_t>(module);
  if (slot.module == id) return slot.root;
  PyObject* answer = call_quietly(session().classify, module);
  const bool root = answer == Py_True;
  Py_XDECREF(answer);
  slot = {id, root};
  if (root) remember_type(Py_TYPE(module));
  return root;
}

bool in_training_mode(PyObject* module) {
  static PyObject* const training = interned("training");
  // Modules keep it in their dict; nn.Module's __getattr__ makes the way around it a long one.
  PyObject** dict = _PyObject_GetDictPtr(module);
  PyObject* flag =
      dict == nullptr || *dict == nullptr ? nullptr : PyDict_GetItemWithError(*dict, training);
  if (flag != nullptr) return flag == Py_True;
  PyErr_Clear();
  return is_true(module, training, true);
}

PyObject* hooked_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  if (inside_root || !enter_forward(self, false)) return g_original(self, args, kwargs);
  PyObject* result = g_original(self, args, kwargs);
  leave_forward(result == nullptr);
  return result;
}

}  // namespace

bool enter_forward(PyObject* module, bool always_training) {
  if (inside_root || backward_depth > 0 || compiling() || !awake()) return false;
  if (module != nullptr && !is_root(module)) return false;
  const bool grad_on = grad_enabled();
  inside_root = true;
  if (grad_on) g_forwards.fetch_add(1, std::memory_order_relaxed);
  rec().forward_begin(grad_on, always_training || module == nullptr || in_training_mode(module));
  return true;
}

void leave_forward(bool raised) {
  inside_root = false;
  rec().forward_end(raised);
}

void install_slot(PyObject* object) {
  if (!PyType_Check(object)) return;
  auto* type = reinterpret_cast<PyTypeObject*>(object);
  if (g_original == nullptr) g_original = type->tp_call;  // nn.Module comes first
  if (type->tp_call == g_original) type->tp_call = hooked_call;
}

bool slots_were_reset() {
  for (size_t i = 0; i < g_root_type_count; ++i)
    if (g_root_types[i]->tp_call == g_original) return true;
  return false;
}

uint64_t slot_forwards() { return g_forwards.load(std::memory_order_relaxed); }

void forget_modules() { g_known = {}; }

void forget_module(uintptr_t id) {
  for (Known& slot : g_known)
    if (slot.module == id) slot = {};
}

void begin_compile() {
  g_compiled_ever = true;
  if (g_compiles.fetch_add(1) == 0 && awake()) rec().begin(static_cast<uint8_t>(Phase::kCompile));
}

void end_compile() {
  if (g_compiles.load() == 0) return;
  if (g_compiles.fetch_sub(1) == 1 && awake()) rec().end(static_cast<uint8_t>(Phase::kCompile));
}

bool compiled_ever() { return g_compiled_ever; }

bool compiling() { return g_compiles.load(std::memory_order_relaxed) > 0; }

}  // namespace stepscope::bindings
