// How much of the ranks' sync is transfer, and how much is waiting for one another. Pure.
//
//   transfer(k) = least wait of a rank at sync point k: that rank waited for the wire alone
// A history without sync points (of an older version) is joined by step: least sync phase of a rank.
#pragma once

#include <optional>

#include "engine/rules.h"

namespace stepscope::engine {

struct SyncTransfer {
  RatioSeries transfer;  // of joined steady steps: transfer, and the step
  int64_t first_step = 0, last_step = 0, steps = 0;
  double sync_share = 0;  // transfer and waiting
  double transfer_share = 0;
};

// None where it cannot be told: one rank, a rank that no agent reports or without enough steady
// steps, sync not measured, or too few steps in common.
std::optional<SyncTransfer> sync_transfer(const Context& context);

bool has_sync_points(const RunHistory& run);

}  // namespace stepscope::engine
