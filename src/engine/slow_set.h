// The slow set: ranks whose own work is longer than that of the fastest quarter, clearly and steadily.
//
//   a window passes for a rank: delta >= straggler_delta, and a sign test of its work against that of the fastest
//   plus straggler_margin of the step, with p < straggler_p / (4 x ranks)
//   it is slow now: also in the shortest window delta >= straggler_delta and >= half of that window's delta
//
// Windows, in steps: w0 = ceil(log2(4 x ranks / straggler_p)) + 4, and those of 32, 64 and 100 that are longer.
// Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/work_window.h"
#include "model/settings.h"

namespace stepscope::engine {

struct SlowSet {
  WindowMedians shortest;
  std::vector<int32_t> firm;  // positions: slow now
  std::vector<int32_t>
      likely;  // positions: so where another is firm (a node, a group begins together)
};

size_t shortest_window(const Settings& settings, int32_t ranks);

// None of `known` (by position: an episode that is open, or -1) are looked for again. The window holds at least
// shortest_window steps.
SlowSet find_slow(const WorkWindow& window, const Settings& settings,
                  const std::vector<int32_t>& known);

}  // namespace stepscope::engine
