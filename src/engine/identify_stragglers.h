// The simple rule that people ask for by name: a rank is a straggler when its time exceeds a
// multiple of what is usual. Wall times alone cannot name a culprit where ranks wait for each
// other; STRAGGLER findings do that.
//
// Thread safety: pure. Keys are rank numbers; any unit of time, the same for all.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace stepscope::engine {

struct StragglerOptions {
  double threshold_multiplier = 2.0;
  // "mean": of all ranks, the slow one included. It moves with the culprit, so that for 2 ranks at
  // 2.0 it can never be exceeded: use "median".
  // "median": of the other ranks, so that it works for 2 ranks too.
  std::string method = "mean";
  // For series: how many of the newest values of each rank count (a moving average for "mean", a
  // moving median for "median"); absent: all.
  std::optional<int64_t> window = {};
};

// Ranks in ascending order whose time is above threshold_multiplier x the mean or median. No ranks:
// an empty list. An Error names the rank or option: a time that is not finite or negative, a series
// without values, an unknown method, a multiplier that is not above 0, a window under 1.
Result<std::vector<int64_t>> identify_stragglers(const std::map<int64_t, double>& batch_times,
                                                 const StragglerOptions& options = {});
Result<std::vector<int64_t>> identify_stragglers(
    const std::map<int64_t, std::vector<double>>& batch_times,
    const StragglerOptions& options = {});

}  // namespace stepscope::engine
