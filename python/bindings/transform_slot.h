// The hook on transforms: the tp_call slot of a callable's class, as with modules (module_slot.h). No
// attribute of the object or its class changes; of a class that is watched, objects that were not
// named cost a look into a table.
//
// Thread safety: under the GIL. Bounded: 128 classes, which are kept for good; 256 objects, of which
// the newest count.
#pragma once

#include <Python.h>

#include <cstdint>

namespace stepscope::bindings {

// Times calls of `transform` under this number. False where its class cannot be watched.
bool time_transform(PyObject* transform, uint8_t number);
void forget_transforms();  // after a fork: the numbers are of the parent's segment

}  // namespace stepscope::bindings
