// STRAGGLER, and IMBALANCE of groups: one finding an episode, worst first.
//
//   cost_ms_per_step, predicted_saving = had this rank (node, group) alone been as quick as the fastest, over the
//   episode; run_gain = the same over the run, which decides the order of the verdict
//   severity by the gain of all that were slow at the time: info under gain_warning, critical from gain_critical
#include <algorithm>
#include <utility>

#include "engine/claim.h"
#include "engine/episode_keeper.h"
#include "engine/rank_cause.h"
#include "engine/waste.h"
#include "engine/words.h"

namespace stepscope::engine {
namespace {

constexpr size_t kMostFindings = 32;

std::string ranks_of(const Episode& episode) {
  std::string out;
  for (const auto& [from, to] : episode.members) {
    if (!out.empty()) out += ", ";
    if (out.size() > 40) return out + "...";
    out += std::to_string(from) + (to > from ? "-" + std::to_string(to) : "");
  }
  return out;
}

int64_t count_of(const Episode& episode) {
  int64_t count = 0;
  for (const auto& [from, to] : episode.members) count += to - from + 1;
  return count;
}

std::string who(const Episode& episode) {
  if (episode.scope == Scope::kRank) return "rank " + std::to_string(episode.rank);
  if (episode.scope == Scope::kNode) return "node " + episode.node;
  return "ranks " + ranks_of(episode);
}

std::string title(const Episode& episode, const RankCause& cause, double cost_ms) {
  std::string text = who(episode);
  if (episode.scope == Scope::kNode) text += " (ranks " + ranks_of(episode) + ")";
  const bool many = episode.scope == Scope::kJob;
  text += many ? " are slower than the rest" : episode.ended ? " held" : " holds";
  if (!many) text += " the others up";
  text += many ? ": " : " by ";
  text += milliseconds(cost_ms) + " a step";
  if (episode.ended)
    text +=
        ", steps " + std::to_string(episode.first_step) + "-" + std::to_string(episode.last_step);
  else
    text += " since step " + std::to_string(episode.first_step);
  if (!cause.words.empty()) text += ": " + cause.words;
  return text;
}

Severity severity(const Settings& settings, double gain) {
  if (gain >= settings.gain_critical) return Severity::kCritical;
  return gain >= settings.gain_warning ? Severity::kWarning : Severity::kInfo;
}

// What tells most comes first: a card has room for a line.
void add_numbers(Finding& finding, const Context& context, const Episode& episode,
                 const RankCause& cause) {
  const Comparison& c = context.run.comparison;
  const double time = std::max(1.0, episode.time_ns), run_time = std::max(1.0, c.time_ns);
  add_evidence(finding, "excess_ms", episode.excess_ns / 1e6, "ms");
  for (const Evidence& one : cause.host.evidence)
    add_evidence(finding, one.name, one.value, one.unit);
  finding.not_measured = cause.host.not_measured;
  add_evidence(finding, "episode_rank_seconds", episode.saved_ns / 1e9 * c.ranks, "s");
  add_waste(finding, c, context.host_time_only);
  add_phase_evidence(finding, episode.phases, 1);
  if (episode.samples_ratio > 0)
    add_evidence(finding, "samples_ratio", episode.samples_ratio, "");
  else
    finding.not_measured.push_back("samples a step");
  add_evidence(finding, "gain", episode.saved_ns / time, "share");
  add_evidence(finding, "gain_of_all_slow", episode.saved_by_all_ns / time, "share");
  add_evidence(finding, "delta", episode.delta, "share");
  add_evidence(finding, "run_gain", episode.saved_ns / run_time, "share");
  add_evidence(finding, "run_gain_of_all_slow", episode.saved_by_all_ns / run_time, "share");
  add_evidence(finding, "run_cost_ms_per_step",
               episode.saved_ns / static_cast<double>(std::max<int64_t>(1, c.steps)) / 1e6, "ms");
  add_evidence(finding, "episode_steps", episode.steps, "steps");
  add_evidence(finding, "opened_step", static_cast<double>(episode.opened_step), "");
  add_evidence(finding, "slow_ranks", static_cast<double>(count_of(episode)), "ranks");
  finding.not_measured.push_back("clocks and throttling of the device");
}

Finding finding_of(const Context& context, const Episode& episode) {
  const RankCause cause = rank_cause(context.run, episode);
  const double time = std::max(1.0, episode.time_ns);
  const double gain = episode.saved_ns / time;
  Finding finding;
  finding.code = episode.code;
  finding.pattern = episode.pattern;
  finding.scope = episode.scope;
  if (episode.rank >= 0) finding.rank = episode.rank;
  if (!episode.node.empty()) finding.node = episode.node;
  finding.severity = severity(context.settings, episode.saved_by_all_ns / time);
  if (!cause.phase.empty()) finding.phase = cause.phase;
  if (!cause.cause.empty()) finding.cause = cause.cause;
  finding.first_step = episode.first_step;
  finding.last_step = episode.last_step;
  finding.ended = episode.ended;
  finding.share = finding.predicted_saving = gain;
  finding.cost_ms_per_step = episode.saved_ns / std::max(1.0, episode.steps) / 1e6;
  finding.title = title(episode, cause, *finding.cost_ms_per_step);
  add_numbers(finding, context, episode, cause);
  if (episode.pattern == "groups")
    finding.advice.push_back(
        {"Give the slower ranks smaller batches (or layers), in proportion to their speed.", gain,
         "Work a step is within 5 % of each other on all ranks.",
         "The groups are meant to differ and the slower one cannot give anything away."});
  else
    finding.advice = rank_advice(cause, who(episode), episode.scope, gain);
  return finding;
}

}  // namespace

void straggler(const Context& context, Findings& findings) {
  std::vector<const Episode*> worst;
  for (const Episode& episode : context.run.comparison.episodes) worst.push_back(&episode);
  std::stable_sort(worst.begin(), worst.end(),
                   [](const Episode* a, const Episode* b) { return a->saved_ns > b->saved_ns; });
  if (worst.size() > kMostFindings) worst.resize(kMostFindings);
  for (const Episode* episode : worst) findings.push_back(finding_of(context, *episode));
}

}  // namespace stepscope::engine
