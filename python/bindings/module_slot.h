// The forward of root modules, seen through the tp_call slot of nn.Module's types.
//
// Why the slot: it is invisible to Dynamo, copy, pickle, jit, fx and export, because no attribute of any class or
// instance changes (trials). FX tracing sets Module.__call__ for a while, and CPython then resets the slots of all
// subclasses; slot_was_reset() sees that by comparing a pointer, at the next backward, and they are put back.
//
// A root is an outermost called module with trainable parameters; loss modules are none. Modules called inside a root
// cost a load and a compare, and when no module of their class was a root for a while, nothing: the slot is taken out.
#pragma once

#include <Python.h>

#include <cstdint>

namespace stepscope::bindings {

void set_module_type(PyObject* type);  // torch.nn.Module, once
// It and every class below it get the slot; one with a tp_call of its own is left alone. Without a
// frame of Python: Dynamo would count it.
void watch_all_classes();
bool slots_are_all_in();
void put_slots_in();               // of all classes that were found
void take_idle_slots_out();        // of those that had no root
bool slot_was_reset();             // of the class of the root called last
void forget_modules();             // classify anew: called at each epoch's start
void forget_module(uintptr_t id);  // the module was freed
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
