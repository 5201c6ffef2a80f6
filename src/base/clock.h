// Clocks. Durations come from CLOCK_MONOTONIC only; wall time is a label and never subtracted.
// Thread safety: everything here is reentrant; no allocation, no locks (clock_gettime is a vDSO
// read).
#pragma once

#include <time.h>

#include <cstdint>

namespace stepscope {

using ClockFunction = int (*)(clockid_t, timespec*);

// clock_gettime as the kernel maps it into every process, without the way through libc and our
// linkage table, which at each event of a training step would be three cold cache lines. Else libc's.
ClockFunction vdso_clock();

inline int64_t clock_ns(clockid_t id) {
  timespec ts;
  clock_gettime(id, &ts);
  return static_cast<int64_t>(ts.tv_sec) * 1'000'000'000 + ts.tv_nsec;
}
inline int64_t monotonic_ns() { return clock_ns(CLOCK_MONOTONIC); }
inline int64_t wall_ns() { return clock_ns(CLOCK_REALTIME); }

}  // namespace stepscope
