#include "report/phases.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "engine/measured.h"
#include "model/facts.h"
#include "report/statistics.h"

namespace stepscope::report {
namespace {

struct Part {
  const char* name;
  Phase phase;
};
constexpr const char* kNoSteadyStep = "no steady step";
constexpr const char* kNotApplicable = "not applicable";
constexpr std::array<const char*, kOccurrenceKinds> kOccurrences = {
    "epoch_start", "checkpoint", "validation", "compile", "profiler"};
constexpr std::array kParts = {
    Part{"epoch_start", Phase::kInput},          Part{"loss", Phase::kForward},
    Part{"recompute", Phase::kBackward},         Part{"other_before_forward", Phase::kOther},
    Part{"other_after_backward", Phase::kOther}, Part{"other_after_optimizer", Phase::kOther},
    Part{"other_between_steps", Phase::kOther},
};

struct RankSteady {
  const RankHistory* history;
  Steady steady;
};

double named(const std::map<std::string, double>& values, const std::string& name) {
  const auto it = values.find(name);
  return it == values.end() ? 0 : it->second;
}

std::set<std::string> user_phases(const std::vector<RankSteady>& ranks) {
  std::set<std::string> names;
  for (const RankSteady& rank : ranks)
    for (const auto& [name, ns] : rank.steady.means.user_ns) names.insert(name);
  return names;
}

bool any_time(const RunHistory& run, Phase phase) {
  const uint32_t bit = uint32_t{1} << static_cast<unsigned>(phase);
  return std::any_of(run.ranks.begin(), run.ranks.end(),
                     [bit](const RankHistory& rank) { return (rank.phases_seen & bit) != 0; });
}

bool any_count(const RunHistory& run, int64_t RankHistory::* member) {
  return std::any_of(run.ranks.begin(), run.ranks.end(),
                     [&](const RankHistory& r) { return r.*member > 0; });
}

// Why there is no time to give for the phase; empty: there is, and 0 means none was spent. What a
// rule may judge is decided in engine/measured.h; here a host time that was seen is shown, with its
// clock.
std::string why_absent(const RunHistory& run, Phase phase) {
  if (!any_count(run, &RankHistory::steps)) return "no step was seen";
  if (any_time(run, phase)) return "";
  switch (phase) {
    case Phase::kInput:
      if (engine::any_rank_has(run, kFactDataLoader)) return "";
      return "no DataLoader was seen; with stepscope.phase(\"input\"): times what loads";
    case Phase::kH2d:
      return engine::host_time_only(run) ? "" : "not applicable: the parameters are in host memory";
    case Phase::kForward:
      return engine::any_rank_has(run, kFactRootModule) ? "" : "no call of a module was seen";
    case Phase::kBackward:
      return any_count(run, &RankHistory::steady_backwards) ? "" : "no backward was seen";
    case Phase::kSync:
      if (engine::world_size(run) <= 1) return "not applicable: one rank";
      if (engine::host_time_only(run)) return "device time is not measured";
      if (engine::any_rank_has(run, kFactReadyNotMeasured))
        return "the end of local backward work was not seen";
      return "";
    case Phase::kOptimizer:
      if (any_count(run, &RankHistory::steady_optimizer_steps)) return "";
      return any_count(run, &RankHistory::skipped_steps) ? "" : "no optimizer step was seen";
    default:
      return "";
  }
}

StepsRow steps_of(const RankSteady& rank) {
  const RankHistory& r = *rank.history;
  StepsRow row{
      r.steps, r.warmup_steps, r.failed_steps, r.profiled_steps, r.incomplete_steps, {}, {}, {}, {},
      true};
  if (r.warmup_steps > 0)
    row.warmup_mean_ms =
        static_cast<double>(r.warmup_total_ns) / 1e6 / static_cast<double>(r.warmup_steps);
  if (rank.steady.count == 0) return row;
  row.mean_ms = rank.steady.means.phase_ns[kTotal] / 1e6;
  row.median_ms = rank.steady.median_ns / 1e6;
  row.p95_ms = rank.steady.p95_ns / 1e6;
  row.exact = rank.steady.exact;
  if (r.steady_fetches > 0)
    row.micro_steps =
        static_cast<double>(r.steady_fetches) / static_cast<double>(rank.steady.count);
  return row;
}

// A phase that no rank measured is not measured here either.
RankRow rank_row(const RankSteady& rank, const std::vector<PhaseRow>& over_all) {
  RankRow row{rank.history->rank, rank.history->node, steps_of(rank), {}, {}, {}};
  for (size_t i = 0; i < over_all.size(); ++i) {
    PhaseRow phase = over_all[i];
    phase.mean_ms = phase.share = std::nullopt;
    phase.measured = phase.measured && row.steps.mean_ms.has_value();
    if (phase.measured) {
      phase.mean_ms = (phase.user ? named(rank.steady.means.user_ns, phase.name)
                                  : rank.steady.means.phase_ns[i]) /
                      1e6;
      if (*row.steps.mean_ms > 0) phase.share = *phase.mean_ms / *row.steps.mean_ms;
    } else if (phase.note.empty()) {
      phase.note = kNoSteadyStep;
    }
    row.phases.push_back(std::move(phase));
  }
  if (!row.steps.mean_ms) return row;
  double shown = 0;
  for (const Phase p :
       {Phase::kInput, Phase::kForward, Phase::kBackward, Phase::kSync, Phase::kOptimizer})
    shown += row.phases[static_cast<size_t>(p)].mean_ms.value_or(0);
  row.own_ms =
      *row.steps.mean_ms - row.phases[static_cast<size_t>(Phase::kSync)].mean_ms.value_or(0);
  row.rest_ms = std::max(0.0, *row.steps.mean_ms - shown);
  return row;
}

// Mean of the means of the ranks that have steady steps.
template <typename Value>
std::optional<double> over_ranks(const std::vector<RankSteady>& ranks, Value value_ns) {
  std::vector<double> means;
  for (const RankSteady& rank : ranks)
    if (rank.steady.count > 0) means.push_back(value_ns(rank.steady.means) / 1e6);
  return mean_of(means);
}

StepsRow steps_over(const std::vector<RankRow>& ranks) {
  StepsRow all;
  std::array<std::vector<double>, 5> values;
  for (const RankRow& rank : ranks) {
    const StepsRow& s = rank.steps;
    if (&rank == &ranks.front() || s.count > all.count) {
      all.count = s.count;
      all.warmup = s.warmup;
    }
    all.failed = std::max(all.failed, s.failed);
    all.profiled = std::max(all.profiled, s.profiled);
    all.incomplete = std::max(all.incomplete, s.incomplete);
    all.exact = all.exact && s.exact;
    const std::array of_rank = {s.mean_ms, s.median_ms, s.p95_ms, s.warmup_mean_ms, s.micro_steps};
    for (size_t i = 0; i < of_rank.size(); ++i)
      if (of_rank[i]) values[i].push_back(*of_rank[i]);
  }
  all.mean_ms = mean_of(values[0]);
  all.median_ms = mean_of(values[1]);
  all.p95_ms = mean_of(values[2]);
  all.warmup_mean_ms = mean_of(values[3]);
  all.micro_steps = mean_of(values[4]);
  return all;
}

std::optional<double> share_of(const std::optional<double>& ms,
                               const std::optional<double>& step_ms) {
  return ms && step_ms && *step_ms > 0 ? std::optional(*ms / *step_ms) : std::nullopt;
}

PhaseRow phase_row(std::string name, bool user, std::string absent,
                   const std::optional<double>& mean_ms, const std::optional<double>& step_ms) {
  PhaseRow row;
  row.name = std::move(name);
  row.user = user;
  row.applicable = !absent.starts_with(kNotApplicable);
  row.note = std::move(absent);
  if (!row.note.empty()) return row;
  row.mean_ms = mean_ms;
  row.share = share_of(mean_ms, step_ms);
  row.measured = mean_ms.has_value();
  if (!row.measured) row.note = kNoSteadyStep;
  return row;
}

OccurrenceRow occurrence_row(const RunHistory& run, size_t kind) {
  OccurrenceRow row{kOccurrences[kind], 0, 0, {}};
  for (const RankHistory& r : run.ranks) {
    const OccurrenceStats& stats = r.occurrences[kind];
    if (stats.count <= row.count) continue;
    row.count = stats.count;
    row.total_ms = static_cast<double>(stats.total_ns) / 1e6;
    std::vector<int64_t> sorted;
    for (const auto& recent : stats.recent) sorted.push_back(recent.duration_ns);
    std::sort(sorted.begin(), sorted.end());
    if (sorted.empty()) continue;
    const size_t n = sorted.size();
    row.median_ms = static_cast<double>(sorted[(n - 1) / 2] + sorted[n / 2]) / 2e6;
  }
  return row;
}

}  // namespace

std::array<bool, kPhaseCount> measured_phases(const RunHistory& run) {
  std::array<bool, kPhaseCount> measured{};
  for (size_t i = 0; i < kPhaseCount; ++i)
    measured[i] = why_absent(run, static_cast<Phase>(i)).empty();
  return measured;
}

void fill_phases(const RunHistory& run, Summary& summary) {
  std::vector<RankSteady> ranks;
  for (const RankHistory& r : run.ranks) ranks.push_back({&r, steady_of(r)});
  const auto step_ms = over_ranks(ranks, [](const Means& m) { return m.phase_ns[kTotal]; });

  for (size_t i = 0; i < kPhaseCount; ++i) {
    const auto mean_ms = over_ranks(ranks, [i](const Means& m) { return m.phase_ns[i]; });
    summary.phases.push_back(phase_row(std::string(kPhaseNames[i]), false,
                                       why_absent(run, static_cast<Phase>(i)), mean_ms, step_ms));
  }
  for (const std::string& name : user_phases(ranks)) {
    const auto mean_ms = over_ranks(ranks, [&](const Means& m) { return named(m.user_ns, name); });
    summary.phases.push_back(phase_row(name, true, "", mean_ms, step_ms));
  }
  for (const Part& part : kParts) {
    PartRow row{part.name, std::string(phase_name(part.phase)), {}, {}};
    if (summary.phases[static_cast<size_t>(part.phase)].measured)
      row.mean_ms = over_ranks(ranks, [&](const Means& m) { return named(m.part_ns, part.name); });
    row.share = share_of(row.mean_ms, step_ms);
    summary.parts.push_back(std::move(row));
  }
  for (size_t kind = 0; kind < kOccurrenceKinds; ++kind)
    summary.occurrences.push_back(occurrence_row(run, kind));
  for (const RankSteady& rank : ranks) summary.ranks.push_back(rank_row(rank, summary.phases));
  summary.steps = steps_over(summary.ranks);
}

}  // namespace stepscope::report
