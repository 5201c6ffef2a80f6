// What a slow rank's process shows and the others' do not: waiting for a core.
//
// Pure; looks at a bounded number of the other ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "model/history.h"

namespace stepscope::engine {

struct CoreWait {
  double share = 0;         // of the time in which the rank could have run, but had no core
  double others_share = 0;  // median of the other ranks
  bool stands_out() const;
};

// Of the slow ranks (positions, mean) over these steps; none where it was not measured.
std::optional<CoreWait> core_wait(const RunHistory& run, std::span<const int32_t> slow,
                                  std::pair<int64_t, int64_t> steps);

}  // namespace stepscope::engine
