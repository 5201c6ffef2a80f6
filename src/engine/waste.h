// What waiting for each other costs the run as a whole, as evidence of a finding. Pure.
//
//   slowdown S = sum T / sum (T - cost), waste = 1 - 1/S, rank-seconds = waste x ranks x time
#pragma once

#include "model/comparison.h"
#include "model/finding.h"

namespace stepscope::engine {

double slowdown(const Comparison& comparison);
double rank_seconds(const Comparison& comparison);
double judged_step_ms(const Comparison& comparison);  // mean
void add_waste(Finding& finding, const Comparison& comparison);

}  // namespace stepscope::engine
