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

void keep_slots() {
  if (slot_was_reset()) [[unlikely]]
    Py_XDECREF(call_quietly(session().install_slots));
}

void look_around() {
  // Classes that come late (a model built after the first batch) show at the first backwards; a
  // backward without a root forward may mean that its class is new. A walk is 0.4 ms: where nothing
  // is found each is twice as far from the last.
  static uint32_t looks = 0;
  static int unseen_in_a_row = 0;
  static bool zero_grad_watched = false;
  if (hot().look_around > 0) --hot().look_around;
  ++looks;
  if ((looks & (looks - 1)) == 0 || slot_was_reset())
    Py_XDECREF(call_quietly(session().install_slots));
  unseen_in_a_row = hot().forward_seen ? 0 : unseen_in_a_row + 1;
  if (unseen_in_a_row >= 2 && !session().fetch_seen && !zero_grad_watched && !compiled_ever()) {
    zero_grad_watched = true;
    Py_XDECREF(call_quietly(session().watch_zero_grad));
  }
}

}  // namespace stepscope::bindings
