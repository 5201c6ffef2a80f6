// Who holds up ranks that have not moved, for who wants to look at these processes. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "model/history.h"

namespace stepscope::engine {

// The late ranks of each STUCK finding, in their order; where all ranks wait for each other the first of them.
std::vector<int32_t> late_when_stuck(const RunHistory& run);

}  // namespace stepscope::engine
