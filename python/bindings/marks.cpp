#include "marks.h"

#include "base/hot.h"
#include "module_slot.h"
#include "session.h"

namespace stepscope::bindings {
namespace {

STEPSCOPE_HOT_DATA constinit uint64_t g_optimizer_steps = 0;

// (optimizer, args, kwargs), as torch calls its global step hooks.
STEPSCOPE_HOT_CODE PyObject* optimizer_begin(PyObject*, PyObject* const* args, Py_ssize_t count) {
  ++g_optimizer_steps;
  if (count > 0 && !compiling() && awake())
    rec().optimizer_begin(reinterpret_cast<uintptr_t>(args[0]));
  Py_RETURN_NONE;
}

STEPSCOPE_HOT_CODE PyObject* optimizer_end(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count > 0 && !compiling() && awake())
    rec().optimizer_end(reinterpret_cast<uintptr_t>(args[0]));
  Py_RETURN_NONE;
}

PyObject* zero_grad(PyObject*, PyObject*) {
  if (hot().state.load(std::memory_order_relaxed) == State::kAwake && !compiling())
    rec().zero_grad();
  Py_RETURN_NONE;
}

PyObject* eval_called(PyObject*, PyObject*) {
  hot().mode_unsure = true;
  if (hot().state.load(std::memory_order_relaxed) == State::kAwake) rec().eval_called();
  Py_RETURN_NONE;
}

PyObject* train_called(PyObject*, PyObject*) {
  if (hot().state.load(std::memory_order_relaxed) == State::kAwake) rec().train_called();
  Py_RETURN_NONE;
}

// gc.callbacks: (phase, info). A collection never opens the segment.
PyObject* collected(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count < 1 || hot().state.load(std::memory_order_relaxed) != State::kAwake) Py_RETURN_NONE;
  const bool starts =
      PyUnicode_Check(args[0]) && PyUnicode_READ_CHAR(args[0], 2) == 'a';  // "start", "stop"
  if (starts)
    rec().begin(static_cast<uint8_t>(Phase::kGc));
  else
    rec().end(static_cast<uint8_t>(Phase::kGc));
  Py_RETURN_NONE;
}

PyObject* compile_begin(PyObject*, PyObject*) {
  begin_compile();
  Py_RETURN_NONE;
}

PyObject* compile_end(PyObject*, PyObject*) {
  end_compile();
  Py_RETURN_NONE;
}

// Engine callback: all local work of this backward is done, DDP's waiting not begun.
PyObject* local_work_done(PyObject*, PyObject*) {
  if (hot().state.load(std::memory_order_relaxed) == State::kAwake) rec().ready();
  Py_RETURN_NONE;
}

PyMethodDef g_local_work_done_def = {"local_work_done", local_work_done, METH_NOARGS, nullptr};

// Tensor.register_post_accumulate_grad_hook: must return None.
PyObject* gradient_accumulated(PyObject*, PyObject*) {
  static PyObject* callback = PyCFunction_New(&g_local_work_done_def, nullptr);
  PyObject* queue = session().queue_callback;
  if (queue != nullptr && callback != nullptr && !compiling()) {
    PyObject* queued = PyObject_CallOneArg(queue, callback);
    if (queued == nullptr)
      PyErr_Clear();  // not inside a backward: no ready mark, and that is recorded
    Py_XDECREF(queued);
  }
  Py_RETURN_NONE;
}

PyObject* module_freed(PyObject*, PyObject* id) {
  forget_module(PyLong_AsUnsignedLongLong(id));
  PyErr_Clear();
  Py_RETURN_NONE;
}

PyCFunction fast(PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

}  // namespace

uint64_t optimizer_steps_begun() { return g_optimizer_steps; }
void count_optimizer_step() { ++g_optimizer_steps; }

PyMethodDef mark_functions[] = {
    {"optimizer_begin", fast(optimizer_begin), METH_FASTCALL, "The global pre-hook."},
    {"optimizer_end", fast(optimizer_end), METH_FASTCALL, "The global post-hook."},
    {"zero_grad", zero_grad, METH_NOARGS, "Optimizer.zero_grad was called."},
    {"eval_called", eval_called, METH_NOARGS, "A root's eval() was called."},
    {"train_called", train_called, METH_NOARGS, "A root's train() was called."},
    {"collected", fast(collected), METH_FASTCALL, "For gc.callbacks."},
    {"compile_begin", compile_begin, METH_O, "For torch._dynamo.callback.on_compile_start."},
    {"compile_end", compile_end, METH_O, "For torch._dynamo.callback.on_compile_end."},
    {"gradient_accumulated", gradient_accumulated, METH_O,
     "For Tensor.register_post_accumulate_grad_hook."},
    {"module_freed", module_freed, METH_O, "The module with this id() is gone."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace stepscope::bindings
