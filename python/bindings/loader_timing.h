// The time of calls inside the making of a batch, each less that of timed calls inside it.
//
// Thread safety: a thread's open calls are its own; sums are atomic. Invariant: outside a fetch, and
// of a batch that is not looked at closely, timing() is false: two or three loads.
#pragma once

#include <Python.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "recorder/loader_recorder.h"

namespace stepscope::bindings {

inline recorder::LoaderRecorder& loading() { return recorder::LoaderRecorder::instance(); }

struct LoadingCalls {
  struct Frame {
    int64_t inside_ns = 0;  // of timed calls within
    Frame* parent = nullptr;
  };
  Frame* top = nullptr;  // the innermost that is open
  bool fetches = false;  // this thread makes a batch
};
extern constinit thread_local LoadingCalls loading_calls;
extern constinit std::atomic<int> threads_fetching;

inline bool timing() {
  return threads_fetching.load(std::memory_order_relaxed) > 0 && loading().detailed() &&
         loading().recording();
}

template <typename Call>
PyObject* timed(uint8_t part_or_name, Call&& call) {
  LoadingCalls& calls = loading_calls;
  LoadingCalls::Frame frame{0, calls.top};
  calls.top = &frame;
  const int64_t begin_ns = monotonic_ns();
  PyObject* result = call();
  const int64_t ns = monotonic_ns() - begin_ns;
  calls.top = frame.parent;
  loading().add(part_or_name, std::max<int64_t>(0, ns - frame.inside_ns));
  if (frame.parent != nullptr)
    frame.parent->inside_ns += ns;
  else if (!calls.fetches)
    loading().add(LoaderPart::kOtherThreads, ns);
  return result;
}

}  // namespace stepscope::bindings
