// How much of the ranks' sync is transfer, and how much is waiting for one another. Pure.
//
//   transfer(step) = min over ranks of sync in that step: that rank waited for the wire alone
#pragma once

#include <optional>

#include "engine/rules.h"

namespace stepscope::engine {

struct SyncTransfer {
  RatioSeries transfer;  // a joined steady step each: transfer, and the mean step of the ranks
  int64_t first_step = 0, last_step = 0;
  double sync_share = 0;  // transfer and waiting
  double transfer_share = 0;
};

// None where it cannot be told: one rank, a rank that no agent reports or without enough steady
// steps, sync not measured, or too few steps that every rank still has raw.
std::optional<SyncTransfer> sync_transfer(const Context& context);

}  // namespace stepscope::engine
