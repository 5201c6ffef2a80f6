// The callables that torch and the interpreter call by themselves: optimizer hooks, garbage collector, compile
// callbacks, the hook on a parameter and the engine callback that it queues. As module functions; see module.cpp.
#pragma once

#include <Python.h>

#include <cstdint>

namespace stepscope::bindings {

extern PyMethodDef mark_functions[];
uint64_t optimizer_steps_begun();
void count_optimizer_step();

}  // namespace stepscope::bindings
