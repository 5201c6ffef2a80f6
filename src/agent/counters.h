// What a segment's counters add up to over the processes of a rank. Plain value.
#pragma once

#include <algorithm>
#include <cstdint>

#include "agent/segment.h"

namespace stepscope::agent {

// Counters come from the segment and may be anything; sums of these cannot overflow.
inline int64_t bounded(uint64_t value) {
  return static_cast<int64_t>(std::min(value, uint64_t{1} << 47));
}

struct Counters {
  int64_t written = 0, dropped = 0, cost_ns = 0, cost_calls = 0;

  void add(Segment& segment) {
    written += bounded(segment.written());
    dropped += bounded(segment.dropped());
    cost_ns += bounded(segment.reader().cost_ns()) * wire::kCostEvery;
    cost_calls += bounded(segment.reader().cost_calls()) * wire::kCostEvery;
  }
};

}  // namespace stepscope::agent
