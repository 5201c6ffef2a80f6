// SLOWED_DOWN: the same run, over time. Relative tests are blind when everybody slows down.
//
//   work(step) = step - sync, of the quickest quarter of the ranks: one slow rank does not move it
//   wire(step) = time of the joined step less the waiting for the late: moves when the transfer does
//   change: a new level at least `slowdown` higher, at least slowdown_steps before and after it
//   ramp: a line that adds `slowdown` over at least ramp_steps
// A level that falls back later has ended. What is told of a rank or node is in STRAGGLER.
#include <algorithm>
#include <map>
#include <utility>

#include "engine/change_points.h"
#include "engine/claim.h"
#include "engine/waste.h"
#include "engine/words.h"

namespace stepscope::engine {
namespace {

constexpr size_t kMostRanks = 16, kMostFindings = 3;
constexpr int64_t kNear = 2;  // steps

using Series = std::vector<SeriesPoint>;

double own_ns(const StepBlock& block) {
  return block.mean_ns[kPhaseCount] - block.mean_ns[static_cast<size_t>(Phase::kSync)];
}

// Ranks that are looked at, spread over all.
std::vector<const RankHistory*> some_ranks(const Context& context) {
  std::vector<const RankHistory*> out;
  const auto& ranks = context.shares.ranks();
  const size_t stride = (ranks.size() + kMostRanks - 1) / kMostRanks;
  for (size_t i = 0; i < ranks.size(); i += std::max<size_t>(stride, 1))
    out.push_back(ranks[i].history);
  return out;
}

Series work_series(const std::vector<const RankHistory*>& ranks) {
  std::map<int64_t, std::pair<double, std::vector<double>>> by_step;  // weight, values
  for (const RankHistory* rank : ranks)
    for (const StepBlock& block : rank->steady_blocks()) {
      auto& [weight, values] = by_step[block.first_step];
      weight = std::max(weight, static_cast<double>(block.count));
      values.push_back(own_ns(block));
    }
  Series out;
  for (auto& [step, entry] : by_step) {
    auto& values = entry.second;
    if (2 * values.size() < ranks.size()) continue;
    const auto quarter = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 4);
    std::nth_element(values.begin(), quarter, values.end());
    out.push_back({static_cast<double>(step), entry.first, *quarter});
  }
  return out;
}

Series wire_series(const Comparison& comparison) {
  Series out;
  for (const SyncBlock& block : comparison.blocks)
    out.push_back({static_cast<double>(block.first_step), block.steps,
                   (block.time_ns - block.cost_ns) / block.steps});
  return out;
}

using PhaseMeans = std::map<std::string, double>;

// Of steps [from, to), medians over blocks; of the first rank: everybody is alike here.
PhaseMeans phase_medians(const RankHistory& rank, double from, double to) {
  std::map<std::string, std::vector<double>> values;
  for (const StepBlock& block : rank.steady_blocks()) {
    const auto step = static_cast<double>(block.first_step);
    if (step < from || step >= to) continue;
    for (int p = 0; p < kPhaseCount; ++p)
      values[std::string(kPhaseNames[static_cast<size_t>(p)])].push_back(
          block.mean_ns[static_cast<size_t>(p)]);
    for (const auto& [name, ns] : block.user_mean_ns) values[name].push_back(ns);
  }
  PhaseMeans out;
  for (auto& [name, one] : values) {
    double sum = 0;
    for (const double ns : one) sum += ns;
    out[name] = sum / static_cast<double>(one.size());
  }
  return out;
}

struct Grown {
  std::string phase;
  double ns = 0;
};

Grown most_grown(const RankHistory& rank, double from, double at, double to) {
  const PhaseMeans before = phase_medians(rank, from, at), after = phase_medians(rank, at, to);
  Grown out;
  for (const auto& [name, ns] : after) {
    const auto old = before.find(name);
    const double more = ns - (old == before.end() ? 0 : old->second);
    if (more > out.ns) out = {name, more};
  }
  return out;
}

// Events in the steps next to the change.
std::string events_near(const RankHistory& rank, int64_t step) {
  bool epoch = false, checkpoint = false, validation = false, compile = false;
  for (const StepSample& s : rank.raw) {
    if (s.step < step - kNear || s.step > step + kNear) continue;
    epoch |= s.parts.epoch_start_ns > 0;
    checkpoint |= s[Phase::kCheckpoint] > 0;
    validation |= s[Phase::kValidation] > 0;
    compile |= s.compiled || s[Phase::kCompile] > 0;
  }
  std::string out;
  const auto add = [&](bool is, const char* name) {
    if (is) out += (out.empty() ? "" : ", ") + std::string(name);
  };
  add(epoch, "epoch start");
  add(checkpoint, "checkpoint");
  add(validation, "validation");
  add(compile, "recompile");
  return out;
}

Advice advice_for(const Grown& grown) {
  if (grown.phase == "sync")
    return {"Look at what else began to use the network at that step.", std::nullopt,
            "The transfer is back at its earlier time.", "The job itself began to send more."};
  if (grown.phase == "input")
    return {"Look at the storage and at the data from that step on: larger samples, a full cache.",
            std::nullopt, "Input is back at its earlier time.",
            "The schedule of the data is meant to change there."};
  return {
      "Compare what the step does before and after that step: batch, sequence length, schedules, "
      "clocks of the "
      "machine.",
      std::nullopt, "The step is back at its earlier time.", "The change was meant."};
}

struct Slower {
  const char* pattern;
  double from, at, to;  // steps: level before, beginning, end (one past)
  double before_ns, after_ns;
  bool ended = false;
};

Finding finding_of(const Context& context, const RankHistory& rank, const Slower& slower) {
  const double rise = slower.after_ns - slower.before_ns;
  const bool is_ramp = std::string_view(slower.pattern) == "ramp";
  const double middle = (slower.at + slower.to) / 2;
  const Grown grown = is_ramp ? most_grown(rank, slower.at, middle, slower.to)
                              : most_grown(rank, slower.from, slower.at, slower.to);
  Finding finding;
  finding.code = "SLOWED_DOWN";
  finding.severity = Severity::kWarning;
  finding.pattern = slower.pattern;
  finding.first_step = static_cast<int64_t>(slower.at);
  finding.last_step = static_cast<int64_t>(slower.to) - 1;
  finding.ended = slower.ended;
  finding.share = rise / slower.before_ns;
  finding.cost_ms_per_step = rise / 1e6;
  finding.predicted_saving = rise / slower.after_ns;
  if (!grown.phase.empty()) finding.phase = finding.cause = grown.phase;
  const std::string events = is_ramp ? "" : events_near(rank, *finding.first_step);
  finding.title = (context.run.ranks.size() > 1 ? "all ranks are " : "each step is ") +
                  percent(rise / slower.before_ns) + " slower " +
                  (is_ramp ? "than at the start, little by little"
                           : "from step " + std::to_string(*finding.first_step) + " on");
  if (slower.ended) finding.title += ", until step " + std::to_string(*finding.last_step);
  if (finding.phase) finding.title += ": " + *finding.phase;
  if (!events.empty()) finding.title += " (next to: " + events + ")";
  add_evidence(finding, "before_ms", slower.before_ns / 1e6, "ms");
  add_evidence(finding, "after_ms", slower.after_ns / 1e6, "ms");
  if (grown.ns > 0) add_evidence(finding, "phase_excess_ms", grown.ns / 1e6, "ms");
  for (const StepSample& s : rank.raw)
    if (s.step == *finding.first_step)
      add_evidence(finding, "after_s", static_cast<double>(s.begin_ns - rank.first_begin_ns) / 1e9,
                   "s");
  finding.not_measured.push_back("clocks and throttling of the machine at that step");
  finding.advice = {advice_for(grown)};
  return finding;
}

double end_of(const Series& series, size_t end) {
  return end < series.size() ? series[end].x : series.back().x + series.back().weight;
}

void judge(const Context& context, const RankHistory& rank, const Series& series,
           Findings& findings) {
  if (series.size() < 2) return;
  const Settings& settings = context.settings;
  const auto levels =
      level_changes(series, settings.slowdown, static_cast<double>(settings.slowdown_steps));
  if (const auto line =
          ramp(series, levels, settings.slowdown, static_cast<double>(settings.ramp_steps))) {
    findings.push_back(finding_of(context, rank,
                                  {"ramp", series.front().x, series.front().x,
                                   end_of(series, series.size()), line->start, line->end}));
    return;
  }
  size_t found = 0;
  for (size_t i = 0; i < levels.size() && found < kMostFindings; ++i) {
    const LevelChange& level = levels[i];
    if (level.after <= level.before) continue;
    const size_t from = i == 0 ? 0 : levels[i - 1].at;
    const bool ended = i + 1 < levels.size() && levels[i + 1].after < level.after;
    findings.push_back(finding_of(context, rank,
                                  {"change", series[from].x, series[level.at].x,
                                   end_of(series, level.end), level.before, level.after, ended}));
    ++found;
  }
}

}  // namespace

void slowed_down(const Context& context, Findings& findings) {
  if (!context.enough() || context.host_time_only) return;
  const std::vector<const RankHistory*> ranks = some_ranks(context);
  const size_t before = findings.size();
  judge(context, *ranks.front(), work_series(ranks), findings);
  if (findings.size() == before && ranks.size() > 1)
    judge(context, *ranks.front(), wire_series(context.run.comparison), findings);
}

}  // namespace stepscope::engine
