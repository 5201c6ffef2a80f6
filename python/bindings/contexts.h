// `with trace_step(model):` and `with stepscope.phase("name"):`. One object a name, made once: entering it is a call
// into the recorder and nothing else. A phase gets its number when it is first entered, since names stand in the
// segment and a forked child has one of its own.
#pragma once

#include <Python.h>

#include <cstdint>

namespace stepscope::bindings {

bool init_contexts();                       // once
PyObject* step_context();                   // new reference to the one step context
PyObject* phase_context(const char* name);  // new reference; the name is cut at 63 bytes

// What entering and leaving a phase_context does. leave_phase: only after an enter_phase that was true.
bool enter_phase(PyObject* phase_context);
void leave_phase(PyObject* phase_context, bool raised);

}  // namespace stepscope::bindings
