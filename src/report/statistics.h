// Means and quantiles over the blocks of a history: single steps where they are kept, rollups where
// they are not.
//
// Thread safety: pure functions.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/history.h"

namespace stepscope::report {

inline constexpr size_t kTotal = kPhaseCount;  // index of the step total in a block's arrays

// Means over all steps of the blocks, in ns.
struct Means {
  std::array<double, kPhaseCount + 1>
      phase_ns{};  // a user's phase of a built-in name is in that one
  std::map<std::string, double> user_ns, part_ns;  // absent: 0
};
Means means_of(const std::vector<StepBlock>& blocks);

// Of the step total. Single steps: exact, between the two nearest. A rollup counts as steps spread
// between its minimum, median and maximum so that its mean comes out right.
double quantile_ns(const std::vector<StepBlock>& blocks, double q);

bool all_single(const std::vector<StepBlock>& blocks);

std::optional<double> mean_of(const std::vector<double>& values);  // absent when there are none

}  // namespace stepscope::report
