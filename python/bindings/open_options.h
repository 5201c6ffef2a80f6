// What _session.py says of this process when it makes a segment: the fields of recorder::OpenOptions by their names.
#pragma once

#include <nanobind/nanobind.h>

#include "recorder/recorder.h"

namespace stepscope::bindings {

// Throws what Python raises where one is missing or of another type.
recorder::OpenOptions open_options(const nanobind::kwargs& given);
void raise_unless(const Status& opened);  // RuntimeError with message and hint

}  // namespace stepscope::bindings
