// Where the longer work of slow ranks lies: phase by phase against the fastest.
//
//   excess(p) = median over steps of phase p on the slow rank - the same on the fastest
//
// Medians over the ranks of both sides. A phase that happens in few steps has no median: where the medians explain
// under half, means are used. Sync is no phase of one's own work. Pure; looks at a bounded number of ranks and steps.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/joined_steps.h"
#include "model/comparison.h"

namespace stepscope::engine {

struct SlowCause {
  std::vector<PhaseExcess> phases;  // above 0, largest first
  double samples_ratio = 0;         // 0: not known
};
// Job steps from..to, both included.
SlowCause explain_slow(const StepJoiner& joiner, std::span<const int32_t> slow,
                       std::span<const int32_t> fastest, std::pair<int64_t, int64_t> steps,
                       double excess_ns);

// Of one step: the late rank's phases less the median of the others', scaled to `cost_ns`. What a rank does after
// its last sync delays the next step's.
std::vector<PhaseExcess> explain_late(const StepJoiner& joiner, int32_t late,
                                      std::span<const int32_t> others, int64_t step,
                                      double cost_ns);

}  // namespace stepscope::engine
