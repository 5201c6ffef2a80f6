// SPIKES, IMBALANCE (rotating) and JITTER: of the waiting left once the slow ranks are mended, at most one.
//
//   spikes    >= spikes_cost of it in <= spikes_syncs of the syncs, and worth it (1 % of the time)
//   rotating  leftover_cost of the time, and a linear fit on the samples takes away >= fit_takes of it
//   jitter    leftover_cost of the time, and none of the above
#include "engine/waiting.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "engine/claim.h"
#include "engine/leftover.h"
#include "engine/rank_cause.h"
#include "engine/slow_ranks.h"
#include "engine/waste.h"
#include "engine/words.h"

namespace stepscope::engine {
namespace {

constexpr double kSpikesWorth = 0.01, kHeavyTail = 2.5, kLeastSyncs = 20, kMostOfIt = 0.5;

double share_of(const Leftover& l) { return l.time_ns > 0 ? l.cost_ns / l.time_ns : 0; }

double fit_takes(const Leftover& l) {
  return l.fitted_cost_ns > 0 ? 1 - l.unexplained_cost_ns / l.fitted_cost_ns : 0;
}

std::vector<PhaseExcess> sorted(const std::map<std::string, double>& phases) {
  std::vector<PhaseExcess> out;
  for (const auto& [phase, ns] : phases) out.push_back({phase, ns});
  std::stable_sort(out.begin(), out.end(),
                   [](const PhaseExcess& a, const PhaseExcess& b) { return a.ns > b.ns; });
  return out;
}

Severity by_gain(const Settings& settings, double gain) {
  if (gain >= settings.gain_critical) return Severity::kCritical;
  return gain >= settings.gain_warning ? Severity::kWarning : Severity::kInfo;
}

// Fields that all three have.
Finding begin(const Context& context, const char* code, const char* pattern, double saving) {
  const Leftover& l = context.run.comparison.leftover;
  const std::vector<PhaseExcess> phases = sorted(l.phases);
  Finding finding;
  finding.code = code;
  finding.pattern = pattern;
  finding.share = share_of(l);
  finding.predicted_saving = saving;
  finding.cost_ms_per_step = saving * l.time_ns / std::max(1.0, l.steps) / 1e6;
  finding.first_step = context.run.comparison.first_judged_step;
  finding.last_step = context.run.comparison.last_judged_step;
  if (!phases.empty()) {
    finding.phase = largest_phase(phases);
    finding.cause = phases_in_words(phases);
  }
  if (const auto late = mostly_late(l)) {
    finding.scope = Scope::kRank;
    finding.rank = *late;
    for (const RankHistory& rank : context.run.ranks)
      if (rank.rank == *late && !rank.node.empty()) finding.node = rank.node;
  }
  add_evidence(finding, "left_cost_share", share_of(l), "share");
  add_evidence(finding, "left_syncs", l.syncs, "");
  add_evidence(finding, "run_gain", saving, "share");
  add_phase_evidence(finding, phases, std::max(1.0, l.steps));
  add_waste(finding, context.run.comparison, context.host_time_only);
  return finding;
}

std::string of_rank(const Finding& finding, const std::string& otherwise) {
  return finding.rank ? "rank " + std::to_string(*finding.rank) : otherwise;
}

Advice less_waiting(double gain) {
  return {"Wait less often: accumulate the gradients of several batches under model.no_sync().",
          gain, "sync falls with the number of waits; the loss curve must not change.",
          "The batch cannot grow, or the ranks already wait once in many batches."};
}

void advise_phase(Finding& finding, double gain) {
  RankCause cause;
  cause.phase = finding.phase.value_or("");
  if (finding.rank || cause.phase == "gc" || cause.phase == "checkpoint" ||
      cause.phase == "validation")
    finding.advice =
        rank_advice(cause, of_rank(finding, "the rank that is late"), Scope::kRank, gain);
}

Finding spikes(const Context& context) {
  const Leftover& l = context.run.comparison.leftover;
  const double share = context.settings.spikes_syncs;
  const double saving = cost_of_top(l, share) / std::max(1.0, l.time_ns);
  Finding finding = begin(context, "SPIKES", "spikes", saving);
  finding.severity = by_gain(context.settings, saving);
  const Spike& worst = l.spikes.front();
  const auto listed = static_cast<size_t>(std::ceil(share * l.syncs));
  std::map<std::string, double> phases;
  std::set<int32_t> ranks;
  std::string list;
  for (size_t i = 0; i < std::min(listed, l.spikes.size()); ++i) {
    const Spike& spike = l.spikes[i];
    phases[spike.phase] += spike.cost_ns;
    ranks.insert(spike.rank);
    if (i < 5)
      list += (list.empty() ? "" : "; ") + ("step " + std::to_string(spike.step)) + " rank " +
              std::to_string(spike.rank) + " " + spike.phase + " " +
              milliseconds(spike.cost_ns / 1e6);
    add_evidence(finding, "spike_at_step_" + std::to_string(spike.step), spike.cost_ns / 1e6, "ms");
    add_evidence(finding, "spike_rank_at_step_" + std::to_string(spike.step), spike.rank, "");
  }
  const std::vector<PhaseExcess> by_phase = sorted(phases);
  finding.phase = largest_phase(by_phase);
  finding.cause = phases_in_words(by_phase);
  if (ranks.size() == 1) {
    finding.scope = Scope::kRank;
    finding.rank = *ranks.begin();
  }
  add_evidence(finding, "spikes_share_of_cost", cost_of_top(l, share) / l.cost_ns, "share");
  add_evidence(finding, "longest_ms", worst.cost_ns / 1e6, "ms");
  finding.title = percent(saving) + " of the time is lost in a few stalls: " + list;
  advise_phase(finding, saving);
  if (finding.advice.empty())
    finding.advice.push_back(
        {"Look at what happened in these steps on these ranks: storage, other jobs, saving, "
         "recompiles.",
         saving, "No stall of that length comes again.",
         "They belong to the job's start or its epochs."});
  return finding;
}

Finding rotating(const Context& context) {
  const Leftover& l = context.run.comparison.leftover;
  const double saving = share_of(l) * fit_takes(l);
  Finding finding = begin(context, "IMBALANCE", "rotating", saving);
  finding.scope = Scope::kJob;
  finding.rank.reset();
  finding.node.reset();
  finding.severity = by_gain(context.settings, saving);
  finding.cause = "samples";
  add_evidence(finding, "fit_takes", fit_takes(l), "share");
  add_evidence(finding, "work_per_sample_us", l.samples_work / l.samples_square / 1e3, "us");
  finding.title = percent(share_of(l)) +
                  " of the time ranks wait for whichever got the largest batch: work follows "
                  "samples, not hardware";
  finding.advice = {
      {"Even out the input with a sampler: group by length, and deal out samples (tokens) so that "
       "every rank has as "
       "many a step.",
       saving, "Samples a step are alike on all ranks, and the waiting falls.",
       "The order of the data must stay as it is."},
      {"Pack or cut sequences to one length.", saving, "Samples a step are the same on all ranks.",
       "Lengths carry meaning for the model."},
      less_waiting(saving / 2)};
  return finding;
}

Finding jitter(const Context& context) {
  const Leftover& l = context.run.comparison.leftover;
  const double share = share_of(l);
  Finding finding = begin(context, "JITTER", "jitter", share);
  finding.severity =
      share >= context.settings.jitter_warning ? Severity::kWarning : Severity::kInfo;
  const double spread = work_spread_ns(l), step_ns = l.time_ns / std::max(1.0, l.steps);
  const double normal = spread * expected_maximum(l.most_ranks);
  const bool heavy = l.syncs > 0 && normal > 0 && l.cost_ns / l.syncs > kHeavyTail * normal;
  add_evidence(finding, "work_spread", spread / step_ns, "share");
  add_evidence(finding, "normal_cost_share", normal * l.syncs / std::max(1.0, l.time_ns), "share");
  const std::string rank =
      finding.rank ? ", nearly always for rank " + std::to_string(*finding.rank) : "";
  if (finding.rank || heavy)
    finding.title = percent(share) + " of the time ranks wait for each other" + rank;
  else
    finding.title = percent(share) + " of the time ranks wait for each other: that many ranks (" +
                    number(l.most_ranks) + ") with this much noise (" + percent(spread / step_ns) +
                    ") cost that";
  if (heavy) {
    add_evidence(finding, "syncs_with_half_of_cost", syncs_holding(l, kMostOfIt), "share");
    finding.title += "; heavy-tailed: " + percent(kMostOfIt) + " of the cost in " +
                     percent(syncs_holding(l, kMostOfIt)) + " of the syncs";
    if (finding.cause) finding.title += " (" + *finding.cause + ")";
  }
  if (finding.rank || heavy) advise_phase(finding, share);
  finding.advice.push_back(less_waiting(share / 2));
  return finding;
}

}  // namespace

Waiting kind_of_waiting(const RunHistory& run) {
  const Leftover& l = run.comparison.leftover;
  const Settings& settings = run.settings;
  if (l.syncs < kLeastSyncs || l.cost_ns <= 0) return Waiting::kLittle;
  const double top = cost_of_top(l, settings.spikes_syncs);
  if (!l.spikes.empty() && top >= settings.spikes_cost * l.cost_ns &&
      top >= kSpikesWorth * l.time_ns)
    return Waiting::kSpikes;
  if (share_of(l) < settings.leftover_cost) return Waiting::kLittle;
  return fit_takes(l) >= settings.fit_takes ? Waiting::kRotating : Waiting::kJitter;
}

void waiting(const Context& context, Findings& findings) {
  switch (kind_of_waiting(context.run)) {
    case Waiting::kLittle:
      return;
    case Waiting::kSpikes:
      return findings.push_back(spikes(context));
    case Waiting::kRotating:
      return findings.push_back(rotating(context));
    case Waiting::kJitter:
      return findings.push_back(jitter(context));
  }
}

}  // namespace stepscope::engine
