// The hooks of loading: in a DataLoader's workers, in the training process that loads itself
// (num_workers=0), and where it takes batches over from workers.
//
//   fetch            a batch is made; opens the time that parts are counted in
//     part           collate, decode, open: timed calls, exclusive of parts inside them
//     transform      a callable of a Compose: see transform_slot.h
//   next             the training process takes a batch over
//
// Thread safety: under the GIL; times are summed atomically. Invariant: outside a fetch, and where
// nothing is recorded, a part or transform costs a few loads and calls what it wraps.
#pragma once

#include <Python.h>

#include <cstdint>

#include "timed_call.h"

namespace stepscope::bindings {

struct CallArguments {
  PyObject* const* values;
  size_t nargsf;
  PyObject* names;
  Py_ssize_t count() const { return PyVectorcall_NARGS(nargsf); }
};

// What the hooks kLoader... do; calls `original` exactly once.
PyObject* loader_hook(Hook hook, uint8_t argument, PyObject* original, const CallArguments& a);

// fetcher_made: (fetcher) -> None, once an epoch; workers_started: (iterator, ns) -> None.
void set_loading_functions(PyObject* fetcher_made, PyObject* workers_started);
void loads_for(PyObject* fetcher, uint32_t loader);  // in the training process: which loader
void takes_for(PyObject* iterator, uint32_t loader);
void be_worker();  // this process is one: waiting and resources count; again at each epoch
void flush_loading();
void close_loading();
void forget_loading();  // after a fork

}  // namespace stepscope::bindings
