// The forward of root modules, seen through the tp_call slot of nn.Module's types.
//
// Why the slot: it is invisible to Dynamo, copy, pickle, jit, fx and export, because no attribute of any class or
// instance changes (trials). FX tracing sets Module.__call__ for a while, and CPython then resets the slots of all
// subclasses; slot_was_reset() sees that by comparing a pointer and the next step puts them back.
//
// A root is an outermost called module with trainable parameters; loss modules are none. Modules called inside a root
// cost a load and a compare.
#pragma once

#include <Python.h>

#include <cstdint>

namespace stepscope::bindings {

void install_slot(PyObject* type);  // idempotent; a type with a tp_call of its own is left alone
bool slot_was_reset();              // of the class of the root called last
void forget_modules();              // classify anew: called at each epoch's start
void forget_module(uintptr_t id);   // the module was freed
void begin_compile();
void end_compile();
bool compiling();
bool compiled_ever();

// Times `call` as a root forward. Nested root forwards belong to the outermost.
bool enter_forward(PyObject* module, bool always_training);
void leave_forward(bool raised);

template <typename F>
PyObject* timed_forward(bool always_training, F&& call) {
  const bool entered = enter_forward(nullptr, always_training);
  PyObject* result = call();
  if (entered) leave_forward(result == nullptr);
  return result;
}

}  // namespace stepscope::bindings
