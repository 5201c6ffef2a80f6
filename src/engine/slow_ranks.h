// Ranks whose own costs are told by a finding about them, so that no finding about the job tells them again. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "model/history.h"

namespace stepscope::engine {

// The rank behind nearly all of what is left of the waiting, where there is one.
std::optional<int32_t> mostly_late(const Leftover& leftover);

// Those of episodes and, where it is late alone, that one. Never all ranks of the run.
std::set<int32_t> slow_ranks(const RunHistory& run);

}  // namespace stepscope::engine
