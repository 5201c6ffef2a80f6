// Which settings to try next, and which are the best: a state machine that is told what each run
// gave.
//
//   own --input fine--> done
//    |
//    v            climb: from the number of workers that the figures ask for to the better
//   batch-wise -> workers -> variants -> finals -> done
//                 neighbours, until both are worse | prefetch, pinning, ... each on the best so far
//
// Short runs sort out (half the steps); the two best and the user's own settings then run again with
// all steps, up to kRounds times, until the best is certainly faster. Whenever a candidate waits for
// data no more than kFineShare of its step, nothing in the grid can be much better, and the search
// goes straight to the finals.
//
// Thread safety: none, one owner. Invariant: best is the user's own unless another is faster by more
// than the noise; of candidates within kTie of each other the one that takes least is best. Every
// run that was told counts, also those after which the search was left alone.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tuner/rate.h"
#include "tuner/space.h"

namespace stepscope::tuner {

inline constexpr double kFineShare = 0.03;
inline constexpr double kTie = 0.02;
inline constexpr int kRounds = 3;

struct Options {
  int steps = 60;  // of a whole run
  int most_trials = 40;
  bool exhaustive = false;  // every combination once, for comparison: most_trials stays
};

struct Request {
  LoaderSettings settings;
  int steps = 0;
  bool own = false;  // the user's settings: nothing is to be changed
};

struct Trial {
  LoaderSettings settings;
  bool own = false;
  LoopRun run;
  double seconds = 0;  // the whole run, its start included
};

enum class Stop {
  kGoesOn,
  kInputFine,  // input does not limit the step any more
  kSearched,   // nothing left to try
  kMostTrials,
  kOwnFailed,  // the user's own settings gave no figure
};
std::string stop_code(Stop stop);

class Search {
 public:
  Search(Space space, Options options);

  std::optional<Request> next() const { return next_; }
  void tell(LoopRun run, double seconds);  // what next() asked for gave

  struct Allowed {
    int workers = 0, crowded_above = 0;
    int64_t queued = INT64_MAX;
  };
  void allow(const Allowed& allowed);  // the limits as they are known now: before tell()
  const Space& space() const { return space_; }

  Stop stop() const { return stop_; }
  int expected_trials() const;  // the whole search, a guess
  const std::vector<Trial>& trials() const { return trials_; }
  Rate rate(const LoaderSettings& settings) const;
  Rate own() const { return rate(space_.user); }
  LoaderSettings best() const;  // by what is known now

 private:
  enum class Stage { kOwn, kBatch, kWorkers, kVariants, kFinals };

  std::optional<Request> decide();
  std::optional<Request> decide_workers();
  std::optional<Request> decide_variant();
  std::optional<Request> decide_final();
  Request shortly(const LoaderSettings& settings) const;
  Request wholly(const LoaderSettings& settings) const;
  LoaderSettings front() const;                 // the fastest so far, certain or not
  std::vector<LoaderSettings> by_rate() const;  // those with figures, fastest first
  LoaderSettings cheapest_of_fastest(const std::vector<LoaderSettings>& fastest_first) const;
  bool fine(const LoaderSettings& settings) const;
  bool crowded(const LoaderSettings& settings) const;  // may slow the loop without making it wait
  bool clear(const LoaderSettings& settings) const;    // faster than the own beyond doubt
  bool tried(const LoaderSettings& settings) const { return runs_.contains(settings); }
  int workers_asked_for() const;

  Space space_;
  Options options_;
  Stage stage_ = Stage::kOwn;
  Stop stop_ = Stop::kGoesOn;
  std::map<LoaderSettings, std::vector<LoopRun>> runs_;
  std::vector<Trial> trials_;
  std::vector<LoaderSettings> finalists_;  // still to run in this round
  bool asked_ = false;                     // for the number of workers that the figures ask for
  int round_ = 0;
  int failures_in_a_row_ = 0;
  std::optional<Request> next_;
};

}  // namespace stepscope::tuner
