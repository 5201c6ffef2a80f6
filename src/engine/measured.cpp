#include "engine/measured.h"

#include <algorithm>
#include <set>

#include "engine/words.h"

namespace stepscope::engine {
namespace {

bool any_time_in(const RankHistory& rank, Phase phase) {
  const auto p = static_cast<size_t>(phase);
  for (const StepSample& step : rank.raw)
    if (step.phase_ns[p] > 0) return true;
  for (const auto& level : rank.rollups)
    for (const StepBlock& block : level)
      if (block.mean_ns[p] > 0) return true;
  return false;
}

bool any_time_in(const RunHistory& run, Phase phase) {
  return std::any_of(run.ranks.begin(), run.ranks.end(),
                     [&](const RankHistory& rank) { return any_time_in(rank, phase); });
}

}  // namespace

bool any_rank_has(const RunHistory& run, FactBits fact) {
  return std::any_of(run.ranks.begin(), run.ranks.end(),
                     [&](const RankHistory& rank) { return (rank.facts & fact) != 0; });
}

bool host_time_only(const RunHistory& run) { return any_rank_has(run, kFactAccelerator); }

int32_t world_size(const RunHistory& run) {
  int32_t size = 1;
  for (const RankHistory& rank : run.ranks) size = std::max(size, rank.world_size);
  return size;
}

std::vector<int32_t> unseen_ranks(const RunHistory& run) {
  if (world_size(run) <= 1) return {};  // a lone process need not know its rank
  std::set<int32_t> seen;
  for (const RankHistory& rank : run.ranks) seen.insert(rank.rank);
  std::vector<int32_t> unseen;
  for (int32_t rank = 0; rank < world_size(run); ++rank)
    if (!seen.contains(rank)) unseen.push_back(rank);
  return unseen;
}

std::optional<std::string> why_not_measured(const RunHistory& run, Phase phase) {
  const bool any_step = std::any_of(run.ranks.begin(), run.ranks.end(),
                                    [](const RankHistory& rank) { return rank.steps > 0; });
  if (!any_step) return "no training step was seen";
  switch (phase) {
    case Phase::kInput:
      if (any_rank_has(run, kFactDataLoader) || any_time_in(run, Phase::kInput))
        return std::nullopt;
      return "no DataLoader was seen";
    case Phase::kH2d:
      if (host_time_only(run)) return "device time not measured";
      return std::nullopt;
    case Phase::kForward:
      if (any_time_in(run, Phase::kForward) || !any_time_in(run, Phase::kBackward))
        return std::nullopt;
      return "no forward was seen before backward";
    case Phase::kOptimizer:
      if (any_time_in(run, Phase::kOptimizer) || !any_time_in(run, Phase::kBackward))
        return std::nullopt;
      if (std::any_of(run.ranks.begin(), run.ranks.end(),
                      [](const RankHistory& rank) { return rank.skipped_steps > 0; }))
        return std::nullopt;
      return "no optimizer step was seen (compiled into the step, or written by hand)";
    case Phase::kSync:
      if (world_size(run) <= 1) return "not applicable: one rank";
      if (host_time_only(run)) return "device time not measured";
      if (any_rank_has(run, kFactReadyNotMeasured))
        return "when each rank's own backward was done (ready) was not measured";
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace stepscope::engine
