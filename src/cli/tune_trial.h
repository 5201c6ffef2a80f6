// One run of the user's command for the tuner: started under the recorder, read from here without
// an agent, and ended as soon as enough steps were seen.
//
//   start --first steps are warm-up--> measure --enough steps, or time--> end of all its processes
//      \--ends by itself, makes no step in time, fills the memory, or a signal comes--> the same
//
// Its folder in /dev/shm holds no run.txt, and agent.lock is ours: other commands see it as live
// while we are, and remove it when we were killed. Nothing of a trial is kept. It is never ended in
// the middle of a checkpoint.
//
// Thread safety: one thread. Invariant: when run() returns no process of the trial is left.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/identity.h"
#include "cli/loader_facts.h"
#include "cli/signals.h"
#include "model/history.h"
#include "tuner/limits.h"
#include "tuner/rate.h"

namespace stepscope::cli {

struct TrialRequest {
  std::string loader;  // STEPSCOPE_LOADER; empty: the user's own settings
  tuner::LoaderSettings settings;
  int steps = 0;
  double steps_per_epoch = 0;
};

struct TrialResult {
  tuner::LoopRun run;
  double seconds = 0;
  int ranks = 0;
  uint32_t facts = 0;  // model/facts.h, of the first rank
  ProcessFacts process;
  std::vector<int> training;  // loaders that feed the loop
  tuner::Machine machine;
  tuner::Seen seen;
  std::string output;  // the end of what it printed
  int signal = 0;      // that ended it, sent to us; 0: none
};

class TrialRunner {
 public:
  struct Options {
    std::vector<std::string> command;
    Environment environment;
    std::optional<std::string> inject;
    double measure_s = 30;  // at most, once kLeastSteps were seen
    double start_s = 600;   // until the first measured step; then the longest wait for a step
  };
  using Progress = std::function<void(int steps, double seconds)>;

  explicit TrialRunner(Options options);
  void set_patience(double start_s) { options_.start_s = start_s; }
  // An Error: the command cannot be started, or /dev/shm not be used.
  Result<TrialResult> run(const TrialRequest& request, Signals& signals, const Progress& progress);

 private:
  Options options_;
};

}  // namespace stepscope::cli
