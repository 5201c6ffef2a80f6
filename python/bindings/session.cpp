#include "session.h"

#include <dlfcn.h>

#include "base/hot.h"
#include "module_slot.h"

namespace stepscope::bindings {

constinit thread_local Nesting nesting;

STEPSCOPE_HOT_DATA constinit Session the_session;

PyObject* call_quietly(PyObject* function, PyObject* argument) {
  if (function == nullptr) return nullptr;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* result =
      argument == nullptr ? PyObject_CallNoArgs(function) : PyObject_CallOneArg(function, argument);
  if (result == nullptr) PyErr_Clear();
  PyErr_Restore(type, value, traceback);
  return result;
}

bool wake() {
  if (session().open == nullptr)
    return false;  // no hooks yet: a phase() before the first trace_step
  State asleep = State::kAsleep;
  if (!hot().state.compare_exchange_strong(asleep, State::kOpening)) return false;
  PyObject* opened = call_quietly(session().open);
  const bool open = opened == Py_True;
  Py_XDECREF(opened);
  session().segment.fetch_add(1);
  hot().state.store(open ? State::kAwake : State::kOff);
  return open;
}

namespace {

bool ask_python() {
  PyObject* function = session().is_grad_enabled;
  if (function == nullptr) return true;
  PyObject* enabled = PyObject_CallNoArgs(function);
  if (enabled == nullptr) {
    PyErr_Clear();
    return true;
  }
  Py_DECREF(enabled);  // True and False outlive us
  return enabled == Py_True;
}

}  // namespace

// c10::GradMode::is_enabled(), static and without arguments. Torch calls it at every operation, so it
// is in the cache; the way through Python costs a microsecond when it is not.
void find_grad_mode() {
  hot().grad_enabled = ask_python;
  void* library = dlopen("libc10.so", RTLD_NOLOAD | RTLD_LAZY);
  if (library == nullptr) return;
  void* symbol = dlsym(library, "_ZN3c108GradMode10is_enabledEv");
  dlclose(library);  // torch holds it
  if (symbol == nullptr) return;
  const auto is_enabled = reinterpret_cast<bool (*)()>(symbol);
  if (is_enabled() == ask_python()) hot().grad_enabled = is_enabled;
}

PyObject* attribute(PyObject* object, PyObject* name) {
  PyObject* value = PyObject_GetAttr(object, name);
  if (value == nullptr) PyErr_Clear();
  return value;
}

PyObject* interned(const char* name) { return PyUnicode_InternFromString(name); }

bool is_true(PyObject* object, PyObject* name, bool otherwise) {
  PyObject* value = attribute(object, name);
  if (value == nullptr) return otherwise;
  Py_DECREF(value);  // True and False outlive us
  return value == Py_True;
}

bool flag_of(PyObject* module, PyObject* name, bool otherwise) {
  PyObject** dict = _PyObject_GetDictPtr(module);
  PyObject* flag =
      dict == nullptr || *dict == nullptr ? nullptr : PyDict_GetItemWithError(*dict, name);
  if (flag != nullptr) return flag == Py_True;
  PyErr_Clear();
  return is_true(module, name, otherwise);
}

PyObject* referent(PyObject* weak) {
#if PY_VERSION_HEX >= 0x030d0000
  PyObject* object = nullptr;
  if (PyWeakref_GetRef(weak, &object) < 0) PyErr_Clear();
  return object;
#else
  PyObject* object = PyWeakref_GetObject(weak);
  if (object == nullptr) PyErr_Clear();
  return object == nullptr || object == Py_None ? nullptr : Py_NewRef(object);
#endif
}

namespace {

// Walking all classes takes 0.2 ms: each time is twice as far from the last.
bool is_power_of_two(uint32_t n) { return (n & (n - 1)) == 0; }

void look_for_roots() {
  static uint32_t looks = 0;
  if (slots_are_all_in() && looks > 0)
    take_idle_slots_out();
  else
    put_slots_in();
  if (is_power_of_two(++looks)) watch_all_classes();
  hot().until_look = slots_are_all_in() ? Hot::kWatched : Hot::kUnwatched;
}

void no_forward_seen() {
  static uint32_t unseen = 0;
  static bool zero_grad_watched = false;
  if (is_power_of_two(++unseen) || slot_was_reset()) watch_all_classes();
  const bool no_module = hot().root_type == nullptr;
  if (unseen < 2 || !no_module || session().fetch_seen || zero_grad_watched || compiled_ever())
    return;
  zero_grad_watched = true;
  Py_XDECREF(call_quietly(session().watch_zero_grad));
}

}  // namespace

void look_around() {
  if (!hot().forward_seen) no_forward_seen();
  if (hot().until_look == 0) look_for_roots();
}

}  // namespace stepscope::bindings
