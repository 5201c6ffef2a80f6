// Which phases of a run were measured. Missing is not zero: what was not is said, with the reason.
//
// Thread safety: pure. Views (report) and rules use the same answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/facts.h"
#include "model/history.h"

namespace stepscope::engine {

bool any_rank_has(const RunHistory& run, FactBits fact);
// Parameters on an accelerator, no device times: every time is host time.
bool host_time_only(const RunHistory& run);
// Ranks of the job that no agent reports: below world_size, without a history.
std::vector<int32_t> unseen_ranks(const RunHistory& run);
int32_t world_size(const RunHistory& run);  // largest that a rank named; at least 1

// Why the phase's time is not known ("no DataLoader was seen", "not applicable: one rank"); none:
// it was measured.
std::optional<std::string> why_not_measured(const RunHistory& run, Phase phase);

}  // namespace stepscope::engine
