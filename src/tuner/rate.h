// How fast a loop ran under one candidate, with what is not known about it.
//
// A step's time is what lies between two fetches, without the rare things that other settings of
// the loader cannot change (validation, checkpoints, compiling) and without epoch starts. Those are
// put back in by reckoning, because N steps seldom hold one: mean step + epoch start / steps an
// epoch.
//
// The interval is the 95 % interval of engine::bootstrap_ratio over the steps of all runs of the
// candidate together, never narrower, to either side, than three quarters of the distance between
// its slowest and fastest run (runs differ by more than their own steps tell) and kNoiseFloor.
//
// Thread safety: pure.
#pragma once

#include <string>
#include <vector>

namespace stepscope::tuner {

struct LoopRun {                             // of the user's loop, under one candidate
  std::vector<double> step_ms{}, wait_ms{};  // equally long; wait: the part that waits for data
  double epoch_start_ms = 0;                 // of each epoch but the first; 0: nothing to pay
  double steps_per_epoch = 0;                // 0: not known, or no end
  std::string failed{};                      // why it gave no figure; empty: it did
};

inline constexpr double kNoiseFloor = 0.01;  // of the rate, either way

struct Rate {
  double steps_per_s = 0, low = 0, high = 0;  // 0: no steps
  double input_share = 0;                     // of the step, epoch starts included
  size_t steps = 0;
};

Rate rate_of(const std::vector<LoopRun>& runs);

// Above 0: `a` is faster than `b` by this share. noise: how much of it the intervals leave open.
struct Comparison {
  double gain = 0, noise = 0;
  bool certain() const { return gain > noise; }
};
Comparison compare(const Rate& a, const Rate& b);

}  // namespace stepscope::tuner
