// One time for all ranks, of clocks that have nothing in common: ranks are laid over each other by the oldest and the
// newest sync point that they left together, and drift evenly in between. Ranks of one node share their clock where
// that agrees with it. Good to a millisecond or so: to look at, not to measure with.
//
// Thread safety: immutable once made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/history.h"

namespace stepscope::exporter {

class Clocks {
 public:
  static constexpr size_t kLookedAt = 16;  // raw steps at either end of a rank
  explicit Clocks(const RunHistory& run);
  // Since the earliest moment that anything is known of; by position in RunHistory::ranks.
  int64_t since_start_ns(size_t position, int64_t rank_ns) const {
    return lines_[position].of_first(rank_ns) - start_ns_;
  }

 private:
  struct Line {  // a rank's clock to that of the first
    int64_t at_ns = 0, shift_ns = 0;
    double drift = 0;
    int64_t of_first(int64_t rank_ns) const {
      return rank_ns + shift_ns +
             static_cast<int64_t>(drift * static_cast<double>(rank_ns - at_ns));
    }
  };
  static Line line_of(const RankHistory& first, const RankHistory& rank);

  std::vector<Line> lines_;
  int64_t start_ns_ = 0;
};

}  // namespace stepscope::exporter
