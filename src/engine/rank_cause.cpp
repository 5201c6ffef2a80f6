#include "engine/rank_cause.h"

#include <algorithm>
#include <array>

#include "engine/claim.h"
#include "engine/episode_keeper.h"
#include "engine/words.h"

namespace stepscope::engine {
namespace {

constexpr double kAlone = 0.80;  // of the excess: the phase is the cause
constexpr double kMoreThanEvenly = 0.05, kExplainedBySamples = 0.5;
constexpr double kEveryPhase = 0.5;  // of its part of the work: slow in all of them

double total(const std::vector<PhaseExcess>& phases) {
  double sum = 0;
  for (const PhaseExcess& phase : phases) sum += phase.ns;
  return sum;
}

double excess_in(const std::vector<PhaseExcess>& phases, Phase phase) {
  for (const PhaseExcess& one : phases)
    if (one.phase == phase_name(phase)) return one.ns;
  return 0;
}

// Forward, backward and optimizer each longer by at least half of what all three are: the machine, not the work.
bool slow_in_every_phase(const RunHistory& run, const Episode& episode) {
  constexpr std::array kComputing = {Phase::kForward, Phase::kBackward, Phase::kOptimizer};
  const std::vector<int32_t> slow = positions_of(run, episode);
  if (slow.empty()) return false;
  std::array<double, kComputing.size()> time{};
  double steps = 0, sum = 0, excess = 0;
  for (const StepSample& step : run.ranks[static_cast<size_t>(slow.front())].raw) {
    if (!step.steady() || step.step < episode.first_step || step.step > episode.last_step) continue;
    for (size_t p = 0; p < kComputing.size(); ++p)
      time[p] += static_cast<double>(step[kComputing[p]]);
    steps += 1;
  }
  if (steps == 0) return false;
  for (size_t p = 0; p < kComputing.size(); ++p) {
    sum += time[p] / steps;
    excess += excess_in(episode.phases, kComputing[p]);
  }
  if (sum <= 0 || excess < kAlone * total(episode.phases)) return false;
  for (size_t p = 0; p < kComputing.size(); ++p)
    if (time[p] <= 0 ||
        excess_in(episode.phases, kComputing[p]) < kEveryPhase * excess / sum * time[p] / steps)
      return false;
  return true;
}

}  // namespace

std::string largest_phase(const std::vector<PhaseExcess>& phases) {
  return phases.empty() ? "" : phases.front().phase;
}

std::string phases_in_words(const std::vector<PhaseExcess>& phases) {
  const double sum = total(phases);
  if (phases.empty() || sum <= 0) return "";
  if (phases.size() == 1 || phases[0].ns >= kAlone * sum) return phases[0].phase;
  return phases[0].phase + " " + percent(phases[0].ns / sum) + ", " + phases[1].phase + " " +
         percent(phases[1].ns / sum);
}

RankCause rank_cause(const RunHistory& run, const Episode& episode) {
  RankCause out;
  const std::vector<int32_t> slow = positions_of(run, episode);
  out.phase = largest_phase(episode.phases);
  out.cause = out.words = phases_in_words(episode.phases);
  const double step_ns = episode.time_ns / std::max(1.0, episode.steps);
  out.host = host_evidence(run, slow, {episode.first_step, episode.last_step},
                           episode.excess_ns / std::max(1.0, step_ns));
  const std::string mostly = out.phase.empty() ? "" : ", mostly in " + out.phase;
  // The work of the fastest is what the samples should scale.
  const double usual = episode.delta > 0 ? episode.excess_ns / episode.delta : 0;
  if (!out.host.cause.empty()) {
    out.cause = out.host.cause;
    out.words = out.host.words + mostly;
  } else if (episode.samples_ratio >= 1 + kMoreThanEvenly &&
             (episode.samples_ratio - 1) * usual >= kExplainedBySamples * episode.excess_ns) {
    out.cause = kMoreSamples;
    out.words = percent(episode.samples_ratio - 1) + " more samples a step" + mostly;
  } else if (slow_in_every_phase(run, episode)) {
    out.cause = kDeviceOrHost;
    out.words = "slow in every phase, so its device or host";
  }
  return out;
}

void add_phase_evidence(Finding& finding, const std::vector<PhaseExcess>& phases, double steps) {
  for (size_t i = 0; i < std::min<size_t>(phases.size(), 3); ++i) {
    std::string name = phases[i].phase;
    for (char& c : name)
      if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9')) c = '_';
    add_evidence(finding, name + "_excess_ms", phases[i].ns / steps / 1e6, "ms");
  }
}

std::vector<Advice> rank_advice(const RankCause& cause, const std::string& who, Scope scope,
                                double gain) {
  const std::string check = "The finding closes, and the others' sync falls by as much.";
  if (cause.cause == kContention)
    return {{"Take off the cores of " + who + " whatever else runs there, or pin its ranks apart.",
             gain, "The rank's waiting for a core falls to that of the others.",
             "The other process is this rank's own loader: give it a core of its own."}};
  if (cause.cause == kThrottled)
    return {{"Raise the CPU quota on the node of " + who +
                 ", or start fewer workers and threads there.",
             gain, "The node's cpu_throttled_share falls to that of the others.",
             "The quota is the same everywhere: then its ranks do more."}};
  if (cause.cause == kCpuSteal)
    return {{"Move " + who +
                 " to a host that is not shared, or exclude it: other guests take its cores.",
             gain, "cpu_steal_share falls to that of the others.", "All hosts are shared alike."}};
  if (cause.cause == kDiskWait)
    return {
        {"Find what " + who +
             " reads or writes itself: read in loader workers, from local storage, ahead of time.",
         gain, "disk_wait_share falls to that of the others.",
         "Its storage is broken or full: then replace it."}};
  if (cause.cause == kPageFaults)
    return {{"Let " + who +
                 " keep its memory: reuse buffers, fewer large allocations that are given back "
                 "each step; where files are mapped, see that they fit into memory.",
             gain, "Its page faults a second fall to those of the others.",
             "Memory is short there: then see the memory findings first."}};
  if (cause.cause == kMoreSamples)
    return {{"Even out the input with a sampler: group by length, and deal out samples (tokens) so "
             "that every rank "
             "has as many a step.",
             gain, "Samples a step are within 5 % of each other on all ranks.",
             "The model needs this rank to see more."},
            {"Give " + who + " a smaller batch until the sampler is even.", gain, check,
             "Its gradients would then count for too little."}};
  if (cause.cause == kDeviceOrHost || (scope == Scope::kNode && cause.phase != "input"))
    return {{"Replace or exclude the host of " + who +
                 ", after a look at heat, power limit and cabling.",
             gain, check, "The same rank number is slow on another host too: then it is its work."},
            {"Give " + who + " a smaller batch where no other host is at hand.", gain, check,
             "All ranks must see equally many samples."}};
  if (cause.phase == "input")
    return {
        {"Make input as quick on " + who +
             " as elsewhere: compare its workers, its files and its storage with another rank's.",
         gain, check, "Its part of the data is larger by nature: even it out with a sampler."}};
  if (cause.phase == "gc")
    return {
        {"After the first steps call gc.collect() and gc.freeze(), and collect on all ranks in the "
         "same step.",
         gain, "gc falls; memory stays level.",
         "The loop makes reference cycles that hold tensors."}};
  if (cause.phase == "checkpoint")
    return {
        {"Save in the background (torch.distributed.checkpoint.async_save), or let every rank save "
         "its part.",
         gain, "checkpoint on " + who + " falls to the copy into memory.",
         "Host memory has no room for a second copy of the state."}};
  if (cause.phase == "validation")
    return {{"Validate on all ranks, each on its part of the data, or less often.", gain, check,
             "The metric needs all the data in one process."}};
  if (cause.phase == "forward" || cause.phase == "backward")
    return {{"Compare what " + who +
                 " computes there with another rank: shapes, samples a step, code run on it alone.",
             gain, check, "Other phases are as slow there: then it is the device or the host."}};
  return {{"Look at what " + who +
               " does there alone: logging, metrics, saving. Do it less often or in a thread.",
           gain, check, "The others wait for its result."}};
}

}  // namespace stepscope::engine
