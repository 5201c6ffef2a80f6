// The 95 % interval of a share, by a circular block bootstrap over the steady steps of all ranks
// together.
//
// Blocks of consecutive steps, about n^(1/3) long, are drawn instead of single steps, because
// neighbours are alike (Politis and Romano 1992). A draw takes the same stretch of the
// run from every rank, because ranks that wait for each other are alike too. 400 draws, percentile
// interval, widened by Student's t for the number of blocks, since percentiles of few blocks are
// too narrow. The seed is fixed: the same steps give the same interval.
//
// Thread safety: pure. Cost: prefix sums make a draw O(n^(2/3)), so 4,000 blocks x 8 ranks stay
// below 50 ms.
#pragma once

#include <span>
#include <vector>

namespace stepscope::engine {

struct Interval {
  double estimate = 0, low = 0, high = 0;
};

// One rank: block i stands for weight[i] steps with these means a step. All three are equally long,
// weights above 0.
struct RatioSeries {
  std::vector<double> weight, value, total;
};

// Mean over ranks of the mean value / mean over ranks of the mean total. Without steps, or of no
// time: all 0. With one block alone nothing is known of the spread: low is 0, high 1.
Interval bootstrap_ratio(std::span<const RatioSeries> ranks);

}  // namespace stepscope::engine
