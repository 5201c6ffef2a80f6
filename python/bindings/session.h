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

enum class State : uint8_t {
  kAsleep,  // no training event yet: the first one opens the segment
  kOpening,
  kAwake,
  kOff,  // STEPSCOPE=0, a worker, no room, or not Linux: nothing is recorded in this process
};

// What a hook touches on every call, in one cache line: between two hooks the model's own work throws
// everything out of the caches, and each further line would cost more than all that is computed here.
struct alignas(64) Hot {
  static constexpr uint8_t kWatched = 4, kUnwatched = 57;
  static constexpr uint8_t kRecomputed = 1, kLiveView = 2;
  std::atomic<State> state{State::kAsleep};
  bool forward_seen = false;  // a root forward with gradients since the last backward
  bool reducer = false;       // DistributedDataParallel is in use: session().reducer_owner
  // eval() was called, or an epoch began: a root forward looks at module.training until one finds
  // it true. Else it is taken to be: the way through the module's dict costs as much as all the rest
  bool mode_unsure = true;
  std::atomic<int16_t> compiles{0};  // compilations in progress
  uint8_t until_look = kWatched;     // backwards until look_around()
  // Rare: what the end of a backward has to do besides. Autograd's threads set kRecomputed.
  std::atomic<uint8_t> rare{0};
  bool (*grad_enabled)() = nullptr;     // torch's gradient mode on this thread
  PyObject* root = nullptr;             // the root called last; not kept alive
  PyTypeObject* root_type = nullptr;    // its class as long as that lives: was its slot reset?
  PyObject* iterator = nullptr;         // the one fetched from last
  uint64_t loader = 0;                  // its loader's number
  PyTypeObject* tensor_type = nullptr;  // torch.Tensor
  // first dimension of a plain tensor, -1 and an error when it has none
  lenfunc tensor_length = nullptr;
};
static_assert(sizeof(Hot) == 64);

struct Session {
  Hot hot;
  std::atomic<uint32_t> segment{0};  // how many segments this process and its ancestors opened
  PyObject* open =
      nullptr;  // () -> bool: opens the segment; called once, at the first training event
  PyObject* classify = nullptr;  // (module) -> bool: a root? called once for each outermost module
  PyObject* watch_zero_grad = nullptr;  // () -> None: once, in loops without modules and loaders
  PyObject* rearm = nullptr;            // () -> None: chooses another parameter for the ready hook
  PyObject* is_grad_enabled = nullptr;  // torch.is_grad_enabled
  PyObject* queue_callback = nullptr;   // Variable._execution_engine.queue_callback
  PyObject* reducer_owner = nullptr;    // weakref to the DistributedDataParallel in use
  bool fetch_seen = false;              // from any DataLoader
  PyObject* live_view = nullptr;        // () -> None: called after each backward while it is set
  // Forward computed again inside the backward in progress (activation checkpointing), by whichever
  // of autograd's threads.
  std::atomic<int64_t> recomputed_ns{0};
};

// A global with a constant address: hooks find it without a guard or a call.
extern constinit Session the_session;
inline Session& session() { return the_session; }
inline Hot& hot() { return the_session.hot; }

// How deep this thread is inside calls that are timed as one.
struct Nesting {
  int spans = 0;
  // Inside torch.autograd's engine: a module called there is a recomputed forward (activation
  // checkpointing), which is backward.
  int backwards = 0;
  bool root = false;  // inside a root's forward
  // Forward computed again for activation checkpointing: since when, and how deep in it.
  int recomputes = 0;
  int64_t recompute_begin_ns = 0;
};
extern constinit thread_local Nesting nesting;

inline recorder::Recorder& rec() { return recorder::Recorder::instance(); }

// The slow half of awake(): asks Python to open the segment. An exception that is set stays set.
bool wake();

// True when events are to be recorded; opens the segment at the first training event.
inline bool awake() {
  const State state = hot().state.load(std::memory_order_relaxed);
  if (state == State::kAwake) return rec().recording();
  return state == State::kAsleep && wake();
}

// Calls a cold Python function of ours; what it raises is dropped: our failure is never the user's.
PyObject* call_quietly(PyObject* function, PyObject* argument = nullptr);

inline bool grad_enabled() { return hot().grad_enabled == nullptr || hot().grad_enabled(); }
// Finds how to ask for it: in torch's own library, else through is_grad_enabled.
void find_grad_mode();

// `object.name`, or nullptr without an error set. `name` is an interned string: see interned().
PyObject* attribute(PyObject* object, PyObject* name);
PyObject* interned(const char* name);  // kept for ever
// `object.name is True`; an attribute that is missing is `otherwise`.
bool is_true(PyObject* object, PyObject* name, bool otherwise);
// The same of a module, which keeps its flags in its dict; nn.Module's __getattr__ makes the way around
// it a long one.
bool flag_of(PyObject* module, PyObject* name, bool otherwise);
PyObject* referent(PyObject* weak);  // a new reference, or nullptr when it is gone

// At a backward that no root forward came before: puts slots back that FX tracing reset, looks for
// module classes that are new, and watches zero_grad where neither modules nor loaders are seen. And
// when it is due: for kWatched backwards every class is watched for roots, then for kUnwatched only
// those that had one, so that the modules inside a root cost nothing.
void look_around();

}  // namespace stepscope::bindings
