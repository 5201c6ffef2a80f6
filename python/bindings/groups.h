// Numbers the occasions on which process groups wait: the same on every member, from the first hook on.
//
// They are counted also while recording is paused or muted: a rank that skipped one would be joined
// with the wrong ones of the others from then on.
// Thread safety: under the GIL. Lifetime: a group that is freed is forgotten (forget_group); its
// counter goes on with its number.
#pragma once

#include <Python.h>

#include <cstdint>

namespace stepscope::bindings {

// (group) -> int: its number in the segment (Recorder::group), 0 for none. Kept for ever.
void set_group_number_function(PyObject* function);

// wire::pack_sync of the next sync point of this process group; 0 where it has no number.
uint64_t next_sync(PyObject* group);

// The group of the DistributedDataParallel in use, or none.
void set_reducer_group(PyObject* group);
uint64_t next_reducer_sync();

void forget_group(uintptr_t group);  // by address
void forget_all_groups();            // in a forked child: its segment has numbers of its own

}  // namespace stepscope::bindings
