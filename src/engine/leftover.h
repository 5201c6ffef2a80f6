// The waiting that is left once the slow ranks are mended (step 4 of diagnosis.md section 2): what spikes, rotating
// imbalance and jitter are read from. Mended ranks are taken out: they count as ordinary others would.
//
//   cost(k) = longest work - median work of the others
//
// Thread safety: pure. Cost: O(ranks x syncs of the step).
#pragma once

#include <vector>

#include "engine/joined_steps.h"
#include "model/comparison.h"

namespace stepscope::engine {

// mended: by position. Steps must be added in their order.
void add_leftover(Leftover& leftover, const JoinedStep& step, const std::vector<char>& mended,
                  const RunHistory& run, const StepJoiner& joiner);

// The cost in the costliest `share` of the syncs.
double cost_of_top(const Leftover& leftover, double share);
// The share of the syncs, costliest first, that holds this share of the cost.
double syncs_holding(const Leftover& leftover, double share_of_cost);
// 1.4826 MAD of a rank's work about its sync's median: a normal's standard deviation.
double work_spread_ns(const Leftover& leftover);
// Expected maximum of so many standard normals.
double expected_maximum(double ranks);

}  // namespace stepscope::engine
