// Means and quantiles over the steady steps of a history: single steps where they are kept, rollups where they are
// not.
//
// Thread safety: pure functions; Quantiles has one owner.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/history.h"

namespace stepscope::report {

inline constexpr size_t kTotal = kPhaseCount;  // index of the step total in a block's arrays

// Means over all steps, in ns.
struct Means {
  std::array<double, kPhaseCount + 1>
      phase_ns{};  // a user's phase of a built-in name is in that one
  std::map<std::string, double> user_ns, part_ns;  // absent: 0
};

// Of the step total. Single steps: exact, between the two nearest. A rollup counts as steps spread
// between its minimum, median and maximum so that its mean comes out right.
class Quantiles {
 public:
  void add(const StepBlock& block);
  void add(const StepSample& step);
  double ns(double q);  // 0 when there is no step
  bool exact() const { return exact_; }

 private:
  struct Point {
    double ns;
    double weight;
  };
  void spread(const StepBlock& block);
  double between_nearest(double q) const;

  std::vector<Point> points_;
  double total_ = 0;
  bool exact_ = true, sorted_ = false;
};

struct Steady {  // of one rank
  int64_t count = 0;
  Means means;
  double median_ns = 0, p95_ns = 0;
  bool exact = true;  // these two, from every step
};
Steady steady_of(const RankHistory& rank);

std::optional<double> mean_of(const std::vector<double>& values);  // absent when there are none

}  // namespace stepscope::report
