#include "cli/tune_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/facts.h"

namespace stepscope::cli {
namespace {

constexpr double kInputMatters = 0.10;  // below it idle cores say nothing of the workers

void keep_most(std::optional<int64_t>& most, const std::optional<int64_t>& value) {
  most = std::max(most, value);
}

}  // namespace

TuneSearch::TuneSearch(TrialResult own, tuner::Options options) : search_(space_of(own), options) {
  const LoaderFacts& first = own.process.loaders.at(own.training.front());
  result_.loaders = own.training;
  result_.dataset = first.dataset;
  steps_per_epoch_ = static_cast<double>(first.steps_per_epoch);
  tell(std::move(own));
}

tuner::Space TuneSearch::space_of(const TrialResult& own) {
  std::vector<std::string>& notes = result_.notes;
  tuner::Space space;
  const auto& loaders = own.process.loaders;
  const LoaderFacts& first = loaders.at(own.training.front());
  space.user = first.settings;
  space.pin = (own.facts & kFactAccelerator) != 0;
  space.batch_wise = true;
  for (const int number : own.training) {
    const auto found = loaders.find(number);
    if (found == loaders.end()) continue;
    const LoaderFacts& loader = found->second;
    space.change_workers = space.change_workers && (!loader.iterable || loader.shares_out);
    space.persist = space.persist && !loader.keeps_epoch;
    space.batch_wise = space.batch_wise && loader.batch_wise;
    space.limit_threads = space.limit_threads || loader.threaded;
    if (loader.settings != first.settings)
      notes.push_back(
          "several loaders feed the loop, with settings of their own: each trial gives "
          "all of them the same");
  }
  if (space.user.multiprocessing_context == "spawn") space.contexts = {"forkserver"};
  if (!space.change_workers)
    notes.push_back(
        fmt::format("num_workers stays as it is: {} is an IterableDataset that does not "
                    "ask get_worker_info(), so every worker would repeat it",
                    first.dataset));
  if (!space.persist)
    notes.push_back(
        fmt::format("persistent_workers was not tried: {} keeps its epoch in itself, "
                    "and a living worker would not hear of the next",
                    first.dataset));
  if (!space.pin) notes.push_back("pin_memory was not tried: no parameters on an accelerator");
  return space;
}

void TuneSearch::tell(TrialResult trial) {
  keep_most(seen_.memory_used_bytes, trial.seen.memory_used_bytes);
  keep_most(seen_.rank_bytes, trial.seen.rank_bytes);
  keep_most(seen_.worker_bytes, trial.seen.worker_bytes);
  keep_most(seen_.batch_bytes, trial.seen.batch_bytes);
  seen_.batch_tensors = std::max(seen_.batch_tensors, trial.seen.batch_tensors);
  if (tuner::rate_of({trial.run}).input_share > kInputMatters)
    seen_.workers_wait = seen_.workers_wait || trial.seen.workers_wait;
  if (machine_.cores <= 0) machine_ = trial.machine;
  const tuner::LoaderSettings& own = search_.space().user;
  result_.limits = tuner::limits(machine_, seen_, std::max(2, own.prefetch_factor));
  const int by_cores =
      machine_.cores > 0 ? std::max(1, static_cast<int>(machine_.cores / machine_.local_ranks)) : 0;
  search_.allow({.workers = tuner::most_workers(result_.limits, own.num_workers),
                 .crowded_above = by_cores,
                 .queued = tuner::most_queued(machine_, seen_).value_or(INT64_MAX)});
  search_.tell(std::move(trial.run), trial.seconds);
}

TuneResult TuneSearch::result(bool interrupted, double seconds) const {
  TuneResult out = result_;
  out.space = search_.space();
  out.trials = search_.trials();
  out.own = search_.own();
  out.best = search_.best();
  out.best_rate = search_.rate(out.best);
  out.stopped_because = interrupted ? "interrupted" : tuner::stop_code(search_.stop());
  out.seconds = seconds;
  return out;
}

}  // namespace stepscope::cli
