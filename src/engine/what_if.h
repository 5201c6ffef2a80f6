// What a step would have lasted, had the slow ranks been as quick as the fastest (step 3 of diagnosis.md section 2).
//
//   saved(k) = max of work - max of the work with that of the slow replaced by the median of the fastest
//
// Pure. Cost: O(ranks x syncs of the step), for any number of slow ones together.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/joined_steps.h"

namespace stepscope::engine {

struct Savings {
  std::vector<double> alone;  // by owner: had only its ranks been quick
  double all = 0;             // had all owned ranks been
};

// owner: by position, which of `owners` slow ones the rank belongs to; -1: none.
Savings what_if(const JoinedStep& step, const std::vector<int32_t>& owner, size_t owners,
                std::span<const int32_t> fastest);

}  // namespace stepscope::engine
