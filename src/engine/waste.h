// What waiting for each other costs the run as a whole, as evidence of a finding. Pure.
//
//   slowdown S = sum T / sum (T - cost), waste = 1 - 1/S, rank-seconds = waste x ranks x time
#pragma once

#include "model/comparison.h"
#include "model/finding.h"

namespace stepscope::engine {

double slowdown(const Comparison& comparison);
double rank_seconds(const Comparison& comparison);
// host_time_only: said, where there is a device whose times were not recorded.
void add_waste(Finding& finding, const Comparison& comparison, bool host_time_only);

}  // namespace stepscope::engine
