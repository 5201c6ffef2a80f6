// Seeded runs of many ranks, as histories: to try the engine where the truth is known. The same options give the same
// run. One step of all ranks at a time, so that live detection can be timed.
//
//   a rank:  input forward backward | ready ... leave | optimizer other     all leave at max(ready) + transfer
//   its work, sync to sync, is longer or shorter by one draw of noise; faults add to it without noise
//
// Thread safety: none. Lifetime: the history passed to step() is the one that start() made.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/history.h"
#include "simulator/fault.h"

namespace stepscope::simulator {

struct Options {
  int32_t ranks = 8;
  int32_t nodes = 0;  // 0: eight ranks a node
  int64_t steps = 300;
  uint64_t seed = 0;
  double input_ms = 5, forward_ms = 30, backward_ms = 50, optimizer_ms = 10, other_ms = 5;
  double transfer_ms = 5;
  int32_t syncs = 1;  // a step, spread over forward and backward
  double noise = 0.05;
  double persistence = 0;   // of a rank's noise from step to step, 0 to below 1
  bool heavy = false;       // Student's t of 3 degrees, of the same deviation
  double spread = 0;        // ranks differ by this for good, standard deviation
  double clock_hours = 10;  // the ranks' clocks are apart by up to so much
  double clock_ppm = 200;   // and each runs fast or slow by up to so much
  bool tokens = false;
  std::vector<Fault> faults;

  double step_ms() const { return input_ms + forward_ms + backward_ms + optimizer_ms + other_ms; }
  // Ranks, nodes and steps that faults name exist.
  Status check() const;
};

class Simulator {
 public:
  explicit Simulator(Options options);

  RunHistory start();
  // Adds the next step of all ranks. False: the run is over, or stuck (then the history is live, and says what
  // each rank does).
  bool step(RunHistory& run);

 private:
  struct Rank {
    int64_t offset_ns = 0;
    double drift = 0, speed = 1, noise = 0, factor = 1;
    double now_ms = 0, begin_ms = 0;  // true time
    bool present = true;
  };
  struct Extra {
    std::array<double, kPhaseCount> ms{};
    double sum() const;
  };

  void elect(int64_t step);
  std::vector<Extra> extras(int64_t step);
  double amount(const Fault& fault, int64_t step) const;
  bool applies(const Fault& fault, int32_t rank) const;
  double draw();
  void draw_factor(Rank& rank);
  int64_t clock(const Rank& rank, double ms) const;
  bool stick(RunHistory& run, int64_t step);
  int32_t node_of(int32_t rank) const;
  double before_ready(const Rank& rank, const Extra& extra, int32_t sync) const;
  void finish(RunHistory& run, int32_t rank, StepSample sample, const Extra& extra);

  Options options_;
  int32_t nodes_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::vector<Rank> ranks_;
  int64_t next_ = 0;
  uint64_t group_ = 0;
  uint32_t index_ = 0, members_ = 0;
};

// The whole run at once, ended (or live, when stuck).
RunHistory simulate(const Options& options);

}  // namespace stepscope::simulator
