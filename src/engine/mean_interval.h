// The mean of a series whose neighbours are alike, how sure it is, and whether two such means differ.
//
// The standard error is that of the circular block bootstrap (Politis and Romano 1992), in closed form: what infinitely
// many draws would give. The block length follows the series' own autocorrelation (Politis and White 2004, corrected
// 2009), so that a machine that is slow for a while counts as one event and not as many. Intervals are Student's, with as
// many degrees of freedom as there are blocks, since few blocks know little of their spread.
//
// Thread safety: pure. Cost: O(n x longest lag), n the points of the series.
#pragma once

#include <vector>

#include "engine/bootstrap.h"

namespace stepscope::engine {

// Consecutive points: point i stands for weight[i] steps, above 0, with this mean a step.
struct WeightedSeries {
  std::vector<double> weight, value;
};

struct Mean {
  double value = 0;
  double error = 0;   // standard error; infinite where there are fewer than two blocks
  double blocks = 0;  // independent ones, as many as there are in effect
};
Mean mean_of(const WeightedSeries& series);

// b - a. `level` is the chance that the truth is outside: 0.05 for a 95 % interval. The ends are infinite where nothing
// is known of the spread.
Interval difference(const Mean& a, const Mean& b, double level);

// Student's t that both tails together leave with probability `tails` (Hill 1970), 0 < tails < 1.
double student_t(double tails, double freedom);

}  // namespace stepscope::engine
