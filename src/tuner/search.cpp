#include "tuner/search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tuner/loop.h"

namespace stepscope::tuner {
namespace {

constexpr int kMostFailures = 2;  // in a row: workers cannot be had here
constexpr double kStartMatters = 0.02;
constexpr double kLeastGain = 0.04;
constexpr double kClearGain = 0.15, kClearNoise = 2;  // needs no second run

// The smallest rung that has as many, else the last.
size_t rung_for(const std::vector<int>& ladder, int workers) {
  for (size_t i = 0; i < ladder.size(); ++i)
    if (ladder[i] >= workers) return i;
  return ladder.size() - 1;
}

}  // namespace

std::string stop_code(Stop stop) {
  switch (stop) {
    case Stop::kGoesOn:
      return "interrupted";
    case Stop::kInputFine:
      return "input_fine";
    case Stop::kSearched:
      return "searched";
    case Stop::kMostTrials:
      return "most_trials";
    case Stop::kOwnFailed:
      return "own_failed";
  }
  return "interrupted";
}

Search::Search(Space space, Options options) : space_(std::move(space)), options_(options) {
  space_.user = clean(space_.user);
  next_ = Request{space_.user, options_.steps, true};
}

void Search::tell(LoopRun run, double seconds) {
  if (!next_) return;
  const Request asked = *next_;
  failures_in_a_row_ = run.failed.empty() ? 0 : failures_in_a_row_ + 1;
  trials_.push_back({asked.settings, asked.own, run, seconds});
  runs_[asked.settings].push_back(std::move(run));
  next_.reset();
  if (own().steps == 0) {
    stop_ = Stop::kOwnFailed;
  } else if (static_cast<int>(trials_.size()) >= options_.most_trials) {
    stop_ = Stop::kMostTrials;
  } else {
    next_ = decide();
    if (!next_) stop_ = fine(best()) ? Stop::kInputFine : Stop::kSearched;
  }
}

void Search::allow(const Allowed& allowed) {
  space_.most_workers = allowed.workers;
  space_.crowded_above = allowed.crowded_above;
  space_.most_queued = allowed.queued;
}

int Search::expected_trials() const {
  const auto done = static_cast<int>(trials_.size());
  if (stop_ != Stop::kGoesOn) return done;
  switch (stage_) {
    case Stage::kOwn:
      return 7;
    case Stage::kBatch:
      return done + 6;
    case Stage::kWorkers:
      return done + 5;
    case Stage::kVariants:
      return done + 3;
    case Stage::kFinals:
      return done + static_cast<int>(finalists_.size()) + 1;
  }
  return done;
}

Rate Search::rate(const LoaderSettings& settings) const {
  const auto found = runs_.find(settings);
  return found == runs_.end() ? Rate{} : rate_of(found->second);
}

std::vector<LoaderSettings> Search::by_rate() const {
  std::vector<std::pair<double, LoaderSettings>> rates;
  for (const auto& [settings, runs] : runs_)
    if (const Rate rate = rate_of(runs); rate.steps > 0)
      rates.emplace_back(rate.steps_per_s, settings);
  std::stable_sort(rates.begin(), rates.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<LoaderSettings> out;
  for (auto& [rate, settings] : rates) out.push_back(std::move(settings));
  return out;
}

// The one that takes least of those within kTie of the fastest.
LoaderSettings Search::cheapest_of_fastest(const std::vector<LoaderSettings>& fastest_first) const {
  if (fastest_first.empty()) return space_.user;
  LoaderSettings found = fastest_first.front();
  const double least = rate(found).steps_per_s / (1 + kTie);
  for (const LoaderSettings& settings : fastest_first)
    if (rate(settings).steps_per_s >= least && cost(settings) < cost(found)) found = settings;
  return found;
}

LoaderSettings Search::front() const { return cheapest_of_fastest(by_rate()); }

bool Search::clear(const LoaderSettings& settings) const {
  const Comparison against_own = compare(rate(settings), own());
  return against_own.gain > std::max(kClearGain, kClearNoise * against_own.noise);
}

// The fastest of many is fast by luck in part: where it is not clear, only who ran again counts.
LoaderSettings Search::best() const {
  std::vector<LoaderSettings> proved = by_rate();
  std::erase_if(proved, [&](const LoaderSettings& settings) {
    return runs_.at(settings).size() < 2 && !clear(settings);
  });
  const LoaderSettings fastest = cheapest_of_fastest(proved);
  const Comparison against_own = compare(rate(fastest), own());
  return against_own.certain() && against_own.gain > kLeastGain ? fastest : space_.user;
}

bool Search::crowded(const LoaderSettings& settings) const {
  return space_.crowded_above > 0 && settings.num_workers > space_.crowded_above;
}

bool Search::fine(const LoaderSettings& settings) const {
  const Rate known = rate(settings);
  return known.steps > 0 && known.input_share <= kFineShare && !crowded(settings);
}

Request Search::shortly(const LoaderSettings& settings) const {
  return {settings, std::max(std::min(kLeastSteps, options_.steps), options_.steps / 2),
          settings == space_.user};
}

Request Search::wholly(const LoaderSettings& settings) const {
  return {settings, options_.steps, settings == space_.user};
}

// At most as many as there are cores for, where the user has more: that may be what is wrong.
// Fetching parallelises at best, so a step without waiting needs as many workers as fetching a batch
// takes such steps.
int Search::workers_asked_for() const {
  const Rate own_rate = own();
  const double step = 1 / own_rate.steps_per_s;
  const double rest = std::max(step * (1 - own_rate.input_share), step * 0.01);
  const int workers = space_.user.num_workers;
  const double fetch = workers > 0 ? step * workers : step * own_rate.input_share;
  const int asked = static_cast<int>(std::clamp(std::ceil(fetch / rest), 1.0, 1000.0));
  return crowded(space_.user) ? std::min(asked, space_.crowded_above) : asked;
}

std::optional<Request> Search::decide() {
  if (options_.exhaustive) {
    for (const LoaderSettings& settings : grid(space_))
      if (!tried(settings)) return wholly(settings);
    return std::nullopt;
  }
  if (fine(front()) && stage_ < Stage::kVariants)
    stage_ = space_.pin ? Stage::kVariants : Stage::kFinals;
  switch (stage_) {
    case Stage::kOwn:
      stage_ = Stage::kBatch;
      if (space_.batch_wise && !space_.user.batch_wise) {
        LoaderSettings batched = space_.user;
        batched.batch_wise = true;
        return shortly(batched);
      }
      [[fallthrough]];
    case Stage::kBatch:
      stage_ = Stage::kWorkers;
      [[fallthrough]];
    case Stage::kWorkers:
      if (auto request = decide_workers()) return request;
      stage_ = Stage::kVariants;
      [[fallthrough]];
    case Stage::kVariants:
      if (auto request = decide_variant()) return request;
      stage_ = Stage::kFinals;
      [[fallthrough]];
    case Stage::kFinals:
      return decide_final();
  }
  return std::nullopt;
}

std::optional<Request> Search::decide_workers() {
  if (failures_in_a_row_ >= kMostFailures) return std::nullopt;
  const std::vector<int> ladder = worker_ladder(space_);
  const LoaderSettings leader = front();
  const auto candidate = [&](size_t rung) {
    LoaderSettings settings = with_workers(space_, ladder[rung]);
    settings.batch_wise = leader.batch_wise;
    return settings;
  };
  if (!std::exchange(asked_, true)) {
    const LoaderSettings asked = candidate(rung_for(ladder, workers_asked_for()));
    if (!tried(asked)) return shortly(asked);
  }
  const size_t at = rung_for(ladder, leader.num_workers);
  if (at + 1 < ladder.size() && !tried(candidate(at + 1))) return shortly(candidate(at + 1));
  if (!tried(candidate(at))) return shortly(candidate(at));
  if (at > 0 && !tried(candidate(at - 1))) return shortly(candidate(at - 1));
  return std::nullopt;
}

std::optional<Request> Search::decide_variant() {
  const LoaderSettings leader = front();
  std::vector<LoaderSettings> variants;
  const auto vary = [&](auto change) {
    LoaderSettings variant = leader;
    change(variant);
    if (!tried(clean(variant)) && fits(space_, variant)) variants.push_back(clean(variant));
  };
  if (space_.pin) vary([](LoaderSettings& s) { s.pin_memory = !s.pin_memory; });
  if (leader.num_workers > 0 && !fine(leader)) {
    if (space_.limit_threads) vary([](LoaderSettings& s) { s.worker_threads = 1; });
    for (const int factor : kPrefetch) {
      if (factor <= leader.prefetch_factor) continue;
      vary([&](LoaderSettings& s) { s.prefetch_factor = factor; });
      break;
    }
    const std::vector<LoopRun>& runs = runs_.at(leader);
    const LoopRun& last = runs.back();
    const double starts = last.steps_per_epoch > 0 ? last.epoch_start_ms / last.steps_per_epoch *
                                                         rate(leader).steps_per_s / 1000
                                                   : 0;
    if (starts > kStartMatters)
      for (const std::string& context : space_.contexts)
        vary([&](LoaderSettings& s) { s.multiprocessing_context = context; });
  }
  if (variants.empty()) return std::nullopt;
  return shortly(variants.front());
}

// A round: the two fastest, and between them the user's own, so that a machine that gets busier
// tells on all.
std::optional<Request> Search::decide_final() {
  while (finalists_.empty()) {
    if (round_ >= kRounds) return std::nullopt;
    const LoaderSettings leader = front();
    const Comparison against_own = compare(rate(leader), own());
    if (leader == space_.user || against_own.gain <= kTie) return std::nullopt;
    if (clear(leader) && (round_ > 0 || fine(leader))) return std::nullopt;
    ++round_;
    std::vector<LoaderSettings> fastest = by_rate();
    std::erase(fastest, space_.user);
    for (const LoaderSettings& other : fastest)
      if (other != leader && finalists_.empty() && !compare(rate(leader), rate(other)).certain())
        finalists_.push_back(other);
    if (!clear(leader)) finalists_.push_back(space_.user);
    finalists_.push_back(leader);
  }
  const LoaderSettings settings = finalists_.back();
  finalists_.pop_back();
  return wholly(settings);
}

}  // namespace stepscope::tuner
