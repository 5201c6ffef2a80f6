// From what a loop under one candidate was seen to do to the figures that the search compares.
//
// Thread safety: pure. Invariant: a step that began an epoch is in epoch_start_ms and nowhere else.
#pragma once

#include <cstdint>
#include <vector>

#include "tuner/loader_settings.h"
#include "tuner/rate.h"

namespace stepscope::tuner {

inline constexpr int kLeastSteps = 8;  // fewer say nothing

// Steps that do not count: the first ones, and what was queued while the loop did other things than
// to take it, which is not how fast it comes.
int warmup_of(const LoaderSettings& settings);

// Puts what an epoch start costs into the run, which has its steps already. start_ms: of all epoch
// starts seen, the first of the process among them.
void add_epoch_starts(LoopRun& run, const LoaderSettings& settings,
                      const std::vector<double>& start_ms);

struct Fetch {
  int64_t asked_ns = 0, got_ns = 0;
  bool epoch_start = false;
};
// A loop in which nothing but fetching and the step was seen; the last step ends at end_ns.
LoopRun run_of(const std::vector<Fetch>& fetches, int64_t end_ns, const LoaderSettings& settings,
               double steps_per_epoch);

}  // namespace stepscope::tuner
