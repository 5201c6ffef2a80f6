// The newest judged steps, and each rank's own work in them: what an episode may still begin in.
//
// Thread safety: none. Invariant: at most kHorizon steps, oldest first; work is kept rank by rank, so that a median
// over steps reads memory in order. Steps are reused, so that long runs do not allocate.
#pragma once

#include <span>
#include <vector>

#include "engine/joined_steps.h"

namespace stepscope::engine {

class WorkWindow {
 public:
  static constexpr size_t kHorizon = 112;  // longest window, and some steps before it

  explicit WorkWindow(size_t ranks) : ranks_(ranks), work_(ranks * kHorizon, kAbsent) {}

  size_t size() const { return size_; }
  bool full() const { return size_ == kHorizon; }
  size_t ranks() const { return ranks_; }
  const JoinedStep& step(size_t i) const { return steps_[(first_ + i) % kHorizon]; }  // 0: oldest
  float work(size_t rank, size_t i) const {
    return work_[rank * kHorizon + (first_ + i) % kHorizon];
  }
  void pop();                   // the oldest
  void push(JoinedStep& step);  // not full; step gets an old one's memory

 private:
  size_t ranks_, first_ = 0, size_ = 0;
  std::vector<JoinedStep> steps_;
  std::vector<float> work_;
};

// The medians of one window.
struct WindowMedians {
  size_t steps = 0;
  double time_ns = 0;            // of a step
  double fastest_ns = 0;         // median over the fastest
  int32_t ranks = 0;             // that took part
  std::vector<float> work;       // by position; kAbsent: in too few steps
  std::vector<int32_t> fastest;  // F: the quarter of the ranks with least work, positions

  double delta(size_t rank) const {  // 0 for an absent one
    return work[rank] == kAbsent || time_ns <= 0 ? 0 : (work[rank] - fastest_ns) / time_ns;
  }
};
WindowMedians medians(const WorkWindow& window, size_t steps);

// The median of the work of `ranks` in a step, or in one sync of it. Of very many some stand for all.
double median_work(const std::vector<float>& work, std::span<const int32_t> ranks);

// Wins that a fair coin reaches with less than p in so many throws; more than throws: cannot be.
int64_t wins_needed(int64_t throws, double p);

// One-sided sign test: the rank's work in the newest `steps` against `reference`, a value a step.
bool is_above(const WorkWindow& window, size_t rank, std::span<const double> reference, double p);

// The first index from which values lie about `height` instead of 0: the likeliest one for normal noise, on values cut at
// -height and 2 x height. 0: from the beginning.
size_t change_up(std::span<const double> values, double height);

}  // namespace stepscope::engine
