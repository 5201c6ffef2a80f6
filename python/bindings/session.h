// What the hooks share: whether this process records, and the few Python objects that they call.
//
// Thread safety: the pointers are set once, under the import lock, before any hook is installed; the state is atomic.
// Lifetime: the process. Nothing here is freed: hooks may run until the interpreter is gone.
// Invariant: a hook that finds recording() false costs one load and calls what it wraps.
#pragma once

#include <Python.h>

#include <atomic>
#include <cstdint>

#include "recorder/recorder.h"

namespace stepscope::bindings {

enum class State : int {
  kAsleep,  // no training event yet: the first one opens the segment
  kOpening,
  kAwake,
  kOff,  // STEPSCOPE=0, a worker, no room, or not Linux: nothing is recorded in this process
};

struct Session {
  std::atomic<State> state{State::kAsleep};
  std::atomic<uint32_t> segment{0};  // how many segments this process and its ancestors opened
  PyObject* open =
      nullptr;  // () -> bool: opens the segment; called once, at the first training event
  PyObject* classify = nullptr;  // (module) -> bool: a root? called once for each outermost module
  PyObject* install_slots = nullptr;    // () -> None: walks nn.Module's subclasses
  PyObject* watch_zero_grad = nullptr;  // () -> None: once, in loops without modules and loaders
  PyObject* rearm = nullptr;            // () -> None: chooses another parameter for the ready hook
  PyObject* is_grad_enabled = nullptr;  // torch.is_grad_enabled
  PyObject* tensor_type = nullptr;      // torch.Tensor
  lenfunc tensor_length =
      nullptr;  // first dimension of a plain tensor, -1 and an error when it has none
  PyObject* queue_callback = nullptr;  // Variable._execution_engine.queue_callback
  PyObject* reducer_owner = nullptr;   // weakref to the DistributedDataParallel in use, or nullptr
};

// A global with a constant address: hooks find it without a guard or a call.
extern constinit Session the_session;
inline Session& session() { return the_session; }

inline recorder::Recorder& rec() { return recorder::Recorder::instance(); }

// The slow half of awake(): asks Python to open the segment. An exception that is set stays set.
bool wake();

// True when events are to be recorded; opens the segment at the first training event.
inline bool awake() {
  const State state = session().state.load(std::memory_order_relaxed);
  if (state == State::kAwake) return rec().recording();
  return state == State::kAsleep && wake();
}

// Calls a cold Python function of ours; what it raises is dropped: our failure is never the user's.
PyObject* call_quietly(PyObject* function, PyObject* argument = nullptr);

bool grad_enabled();

// `object.name`, or nullptr without an error set. `name` is an interned string: see interned().
PyObject* attribute(PyObject* object, PyObject* name);
PyObject* interned(const char* name);  // kept for ever
// `object.name is True`; an attribute that is missing is `otherwise`.
bool is_true(PyObject* object, PyObject* name, bool otherwise);

// Inside torch.autograd's engine, on this thread: a module called there is a recomputed forward (activation
// checkpointing), which is backward.
extern thread_local int backward_depth;

// At the first event of a new step: puts slots back that FX tracing reset, looks for module classes that are new, and
// watches zero_grad where neither modules nor loaders (fetching) are seen.
void step_maintenance(bool fetching = false);

}  // namespace stepscope::bindings
