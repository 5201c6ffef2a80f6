#include "contexts.h"

#include <cstring>

#include "session.h"

namespace stepscope::bindings {
namespace {

struct Context {
  PyObject_HEAD uint32_t segment;  // the segment that `phase` is a number of; 0: none yet
  uint8_t phase;
  char name[wire::kNameBytes];  // empty: trace_step
};

PyTypeObject* g_type = nullptr;
int g_steps_open = 0;  // trace_step blocks entered and not left; the GIL guards it

bool is_step(const Context* context) { return context->name[0] == '\0'; }

uint8_t number(Context* context) {
  const uint32_t segment = session().segment.load(std::memory_order_relaxed);
  if (context->segment != segment) {
    context->phase = rec().name(context->name);
    context->segment = segment;
  }
  return context->phase;
}

// Once a process, in Python: a warning of the user's logging.
void say_nested() {
  static bool said = false;
  if (said) return;
  said = true;
  PyObject* module = PyImport_ImportModule("stepscope._session");
  PyObject* told =
      module == nullptr ? nullptr : PyObject_CallMethod(module, "nested_step", nullptr);
  if (told == nullptr) PyErr_Clear();
  Py_XDECREF(told);
  Py_XDECREF(module);
}

PyObject* enter(PyObject* object, PyObject*) {
  auto* context = reinterpret_cast<Context*>(object);
  if (awake()) {
    if (is_step(context)) {
      rec().enter_step();
      if (g_steps_open++ > 0) [[unlikely]]
        say_nested();
    } else {
      rec().begin(number(context));
    }
  }
  return Py_NewRef(object);
}

// (type, value, traceback): never swallows the exception.
PyObject* leave(PyObject* object, PyObject* const* args, Py_ssize_t count) {
  auto* context = reinterpret_cast<Context*>(object);
  const bool raised = count > 0 && args[0] != Py_None;
  if (is_step(context) && g_steps_open > 0) --g_steps_open;
  if (hot().state.load(std::memory_order_relaxed) == State::kAwake) {
    if (is_step(context))
      rec().exit_step(raised);
    else
      rec().end(number(context), raised);
  }
  Py_RETURN_FALSE;
}

PyMethodDef g_methods[] = {
    {"__enter__", enter, METH_NOARGS, nullptr},
    {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(leave)), METH_FASTCALL,
     nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot g_slots[] = {{Py_tp_methods, g_methods}, {0, nullptr}};
PyType_Spec g_spec = {"stepscope._native.Context", sizeof(Context), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, g_slots};

PyObject* make(const char* name) {
  auto* context = PyObject_New(Context, g_type);
  if (context == nullptr) return nullptr;
  context->segment = 0;
  context->phase = 0;
  std::strncpy(context->name, name, sizeof context->name - 1);
  context->name[sizeof context->name - 1] = '\0';
  return reinterpret_cast<PyObject*>(context);
}

}  // namespace

bool init_contexts() {
  g_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&g_spec));
  return g_type != nullptr;
}

bool enter_phase(PyObject* phase_context) {
  if (!awake()) return false;
  rec().begin(number(reinterpret_cast<Context*>(phase_context)));
  return true;
}

void leave_phase(PyObject* phase_context, bool raised) {
  if (hot().state.load(std::memory_order_relaxed) != State::kAwake) return;
  rec().end(number(reinterpret_cast<Context*>(phase_context)), raised);
}

PyObject* step_context() { return make(""); }
PyObject* phase_context(const char* name) { return make(name); }

}  // namespace stepscope::bindings
