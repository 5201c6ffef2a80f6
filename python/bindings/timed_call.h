// TimedCall: a callable that times what it wraps, and otherwise is it: every attribute is forwarded, it binds as a
// method, arguments go through untouched. About 70 ns a call.
//
// A C type and not a Python function, so that Dynamo, which reads `__name__` of patched torch functions, finds what it
// expects, and so that no frame of ours stands in the user's traceback.
#pragma once

#include <Python.h>

#include <cstdint>

namespace stepscope::bindings {

enum class Hook : uint8_t {
  kSpan,           // a phase: argument = its number
  kIter,           // DataLoader.__iter__(self)
  kIterInit,       // _BaseDataLoaderIter.__init__(self, loader)
  kFetch,          // _BaseDataLoaderIter.__next__(self)
  kBackward,       // torch.autograd._engine_run_backward
  kForward,        // Strategy.training_step of Lightning: a root forward that is no module call
  kSync,           // a call that waits for other ranks
  kIssue,          // a ProcessGroup method: returns a Work
  kWait,           // Work.wait
  kMaybeStep,      // GradScaler._maybe_opt_step: calls Optimizer.step or skips it
  kToDevice,       // Tensor.to, Tensor.cuda, Tensor.copy_
  kProfilerOpen,   // torch.autograd.profiler.profile._start_trace
  kProfilerClose,  // ... .__exit__
  kNamed,          // see named_call()
  // torch.utils.checkpoint: the context in which forward is computed again, and the reentrant kind,
  // where that ends at the engine's entry
  kRecomputeEnter,
  kRecomputeExit,
  kRecompute,
  // loading: see loader_hooks.h
  kLoaderFetch,        // _MapDatasetFetcher.fetch(self, index), and of the iterable one
  kLoaderPart,         // a call inside a fetch: argument = LoaderPart or a transform's number
  kLoaderPickle,       // ForkingPickler.dumps, in workers
  kLoaderNext,         // _MultiProcessingDataLoaderIter._next_data(self)
  kLoaderPoll,         // of the pipe that batches come through
  kLoaderReceive,      // of the same pipe: recv_bytes
  kLoaderTryGet,       // _MultiProcessingDataLoaderIter._try_get_data
  kLoaderPin,          // torch.utils.data._utils.pin_memory.pin_memory
  kLoaderFetcherMade,  // _DatasetKind.create_fetcher
  kLoaderStart,        // _MultiProcessingDataLoaderIter.__init__(self, loader)
  kLoaderAskWhich,     // get_worker_info()
};

bool init_timed_call();  // once; false with a Python error set

// New reference, which keeps `original`.
PyObject* timed_call(PyObject* original, Hook hook, uint8_t argument);
// The same under a phase of this name, as stepscope.phase(name) would time it; such calls nest.
PyObject* named_call(PyObject* original, const char* name);

// number, epoch_begins: (DataLoader) -> int, stays the same while it lives, never used again; the second
// is asked once an epoch. epoch_ended: (number) -> None, when it gave its last batch.
void set_loader_functions(PyObject* number, PyObject* epoch_begins, PyObject* epoch_ended);

}  // namespace stepscope::bindings
