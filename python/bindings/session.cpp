#include "session.h"

#include "module_slot.h"

namespace stepscope::bindings {

thread_local int backward_depth = 0;

constinit Session the_session;

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
  if (!session().state.compare_exchange_strong(asleep, State::kOpening)) return false;
  PyObject* opened = call_quietly(session().open);
  const bool open = opened == Py_True;
  Py_XDECREF(opened);
  session().segment.fetch_add(1);
  session().state.store(open ? State::kAwake : State::kOff);
  return open;
}

bool grad_enabled() {
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

void step_maintenance(bool fetching) {
  // Classes that come late (a model built after the first batch) show in the first steps; a step without a root
  // forward may mean that its class is new. Both are bounded: a walk is 0.4 ms.
  static uint32_t last_step = ~0u;
  static int walks_left = 24;
  static uint64_t forwards_at_last_step = 0;
  static bool fetch_seen = false, zero_grad_watched = false;
  fetch_seen |= fetching;
  const uint32_t step = rec().step();
  if (step == last_step) return;
  last_step = step;
  const uint64_t forwards = slot_forwards();
  const bool nothing_seen = forwards == forwards_at_last_step;
  forwards_at_last_step = forwards;
  if (slots_were_reset() || ((step < 4 || nothing_seen) && walks_left-- > 0))
    Py_XDECREF(call_quietly(session().install_slots));
  if (nothing_seen && step > 0 && !fetch_seen && !zero_grad_watched && !compiled_ever()) {
    zero_grad_watched = true;
    Py_XDECREF(call_quietly(session().watch_zero_grad));
  }
}

}  // namespace stepscope::bindings
