#include "engine/shares.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "engine/median.h"

namespace stepscope::engine {
namespace {

constexpr int64_t kMinOccurrences = 2;
constexpr std::string_view kPartPrefix = "part.", kUserPrefix = "user.";

double median_ns(const OccurrenceStats& stats) {
  std::vector<double> durations;
  for (const auto& recent : stats.recent)
    durations.push_back(static_cast<double>(recent.duration_ns));
  return median(std::move(durations));
}

double total_ns(const RankHistory& rank) {
  // With what lies outside the steps: a validation before the first is a part of this time too.
  const int64_t steps_ns = rank.last_end_ns - rank.first_begin_ns;
  return static_cast<double>(std::max<int64_t>(steps_ns + rank.outside_ns, 1));
}

// n x median, so that one odd occurrence (the first epoch's) does not make the figure; never more
// than they took in truth.
double rare_ns(const OccurrenceStats& stats) {
  if (stats.count < kMinOccurrences) return 0;
  return std::min(static_cast<double>(stats.count) * median_ns(stats),
                  static_cast<double>(stats.total_ns));
}

// Both maps are in the order of their names, so one walk finds all columns.
void spread(const std::map<std::string, double>& means, std::string_view prefix, size_t block,
            size_t blocks, std::map<std::string, std::vector<double>>& values) {
  auto at = values.lower_bound(std::string(prefix));
  for (const auto& [name, mean] : means) {
    const auto compare = [&](const std::string& column) {
      return column.compare(prefix.size(), column.npos, name);
    };
    while (at != values.end() && at->first.starts_with(prefix) && compare(at->first) < 0) ++at;
    if (at == values.end() || !at->first.starts_with(prefix) || compare(at->first) != 0)
      at = values.emplace_hint(at, std::string(prefix) + name, std::vector<double>(blocks));
    at->second[block] = mean;
  }
}

double weighted_mean(const std::vector<double>& weight, const std::vector<double>& value) {
  double sum = 0, weights = 0;
  for (size_t i = 0; i < weight.size(); ++i) {
    sum += weight[i] * value[i];
    weights += weight[i];
  }
  return weights > 0 ? sum / weights : 0;
}

Shares::Rank read_rank(const RankHistory& history, RankHistory::Finest finest) {
  Shares::Rank rank;
  rank.history = &history;
  const std::vector<StepBlock> blocks = history.steady_blocks(finest);
  if (blocks.empty()) return rank;
  rank.first_step = blocks.front().first_step;
  rank.last_step = blocks.back().last_step;
  std::array<std::vector<double>, kPhaseCount> phases;
  for (auto& phase : phases) phase.reserve(blocks.size());
  for (size_t i = 0; i < blocks.size(); ++i) {
    const StepBlock& block = blocks[i];
    rank.steps += block.count;
    rank.weight.push_back(static_cast<double>(block.count));
    rank.total.push_back(block.mean_ns[kPhaseCount]);
    for (size_t p = 0; p < kPhaseCount; ++p) phases[p].push_back(block.mean_ns[p]);
    spread(block.part_mean_ns, kPartPrefix, i, blocks.size(), rank.values);
    spread(block.user_mean_ns, kUserPrefix, i, blocks.size(), rank.values);
  }
  for (size_t p = 0; p < kPhaseCount; ++p)
    rank.values[std::string(kPhaseNames[p])] = std::move(phases[p]);
  for (const auto& [name, values] : rank.values)
    rank.means[name] = weighted_mean(rank.weight, values);
  rank.mean_ns = weighted_mean(rank.weight, rank.total);
  return rank;
}

}  // namespace

Column phase_column(std::initializer_list<Phase> phases) {
  Column column;
  for (const Phase phase : phases) column.push_back({std::string(phase_name(phase)), 1});
  return column;
}

Column part_column(const std::string& name) { return {{std::string(kPartPrefix) + name, 1}}; }

Column user_column(const std::string& name) { return {{std::string(kUserPrefix) + name, 1}}; }

Column without(Column column, const std::string& part) {
  column.push_back({std::string(kPartPrefix) + part, -1});
  return column;
}

double Shares::Rank::mean(const Column& column) const {
  double sum = 0;
  for (const Term& term : column)
    if (const auto found = means.find(term.name); found != means.end())
      sum += term.factor * found->second;
  return sum;
}

double Shares::Rank::rare_share(OccurrenceKind kind) const {
  return std::min(1.0,
                  rare_ns(history->occurrences[static_cast<size_t>(kind)]) / total_ns(*history));
}

Shares::Shares(const RunHistory& run, const std::set<int32_t>& left_out) {
  const auto finest =
      run.ranks.size() > kManyRanks ? RankHistory::Finest::kTenSteps : RankHistory::Finest::kStep;
  for (const RankHistory& history : run.ranks) {
    if (left_out.contains(history.rank)) continue;
    Rank rank = read_rank(history, finest);
    most_steady_steps_ = std::max(most_steady_steps_, rank.steps);
    if (rank.steps >= run.settings.min_steady_steps && rank.mean_ns > 0)
      ranks_.push_back(std::move(rank));
  }
}

int64_t Shares::steady_steps() const {
  int64_t least = ranks_.empty() ? 0 : ranks_.front().steps;
  for (const Rank& rank : ranks_) least = std::min(least, rank.steps);
  return least;
}

int64_t Shares::first_step() const {
  int64_t first = INT64_MAX;
  for (const Rank& rank : ranks_) first = std::min(first, rank.first_step);
  return ranks_.empty() ? 0 : first;
}

int64_t Shares::last_step() const {
  int64_t last = 0;
  for (const Rank& rank : ranks_) last = std::max(last, rank.last_step);
  return last;
}

double Shares::step_ms() const {
  double sum = 0;
  for (const Rank& rank : ranks_) sum += rank.mean_ns;
  return ranks_.empty() ? 0 : sum / static_cast<double>(ranks_.size()) / 1e6;
}

double Shares::share(const Column& column) const {
  double value = 0, total = 0;
  for (const Rank& rank : ranks_) {
    value += rank.mean(column);
    total += rank.mean_ns;
  }
  return total > 0 ? value / total : 0;
}

Interval Shares::interval(const Column& column) const {
  std::vector<RatioSeries> all;
  for (const Rank& rank : ranks_) {
    RatioSeries& series = all.emplace_back();
    series.weight = rank.weight;
    series.total = rank.total;
    series.value.resize(rank.total.size());
    for (const Term& term : column) {
      const auto found = rank.values.find(term.name);
      if (found == rank.values.end()) continue;
      for (size_t i = 0; i < series.value.size(); ++i)
        series.value[i] += term.factor * found->second[i];
    }
  }
  return bootstrap_ratio(all);
}

std::optional<Rare> Shares::rare(OccurrenceKind kind) const {
  double cost = 0, total = 0, with = 0;
  Rare out;
  for (const Rank& rank : ranks_) {
    const OccurrenceStats& stats = rank.history->occurrences[static_cast<size_t>(kind)];
    total += total_ns(*rank.history);
    cost += rare_ns(stats);
    if (stats.count < kMinOccurrences) continue;
    with += 1;
    out.count += static_cast<double>(stats.count);
    out.median_ms = std::max(out.median_ms, median_ns(stats) / 1e6);
  }
  if (with == 0) return std::nullopt;
  out.count /= with;
  out.share = std::min(1.0, cost / total);
  return out;
}

std::vector<std::string> Shares::user_phases() const {
  std::set<std::string> names;
  for (const Rank& rank : ranks_)
    for (auto at = rank.means.lower_bound(std::string(kUserPrefix));
         at != rank.means.end() && at->first.starts_with(kUserPrefix); ++at)
      names.insert(at->first.substr(kUserPrefix.size()));
  return {names.begin(), names.end()};
}

}  // namespace stepscope::engine
