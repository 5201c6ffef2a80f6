// The search for one loop: what may be tried, as its first trial showed it, and within which limits,
// as all trials show them.
//
// Thread safety: one owner.
#pragma once

#include <optional>
#include <string>

#include "cli/tune_result.h"
#include "cli/tune_trial.h"
#include "tuner/search.h"

namespace stepscope::cli {

class TuneSearch {
 public:
  // own: the trial of the user's own settings; it knows at least one of own.training.
  TuneSearch(TrialResult own, tuner::Options options);

  std::optional<tuner::Request> next() const { return search_.next(); }
  void tell(TrialResult trial);  // what next() asked for gave

  int expected_trials() const { return search_.expected_trials(); }
  const std::vector<int>& loaders() const { return result_.loaders; }
  double steps_per_epoch() const { return steps_per_epoch_; }
  TuneResult result(bool interrupted, double seconds) const;

 private:
  tuner::Space space_of(const TrialResult& own);

  TuneResult result_;  // what is known from the start; the rest is in search_
  double steps_per_epoch_ = 0;
  tuner::Machine machine_;
  tuner::Seen seen_;
  tuner::Search search_;
};

}  // namespace stepscope::cli
