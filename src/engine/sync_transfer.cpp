#include "engine/sync_transfer.h"

#include <algorithm>
#include <map>

#include "engine/measured.h"

namespace stepscope::engine {
namespace {

struct Joined {
  double least_sync = 0, total = 0, sync = 0;
  size_t ranks = 0;
};

// Raw steps only: rollups do not know which rank waited least in which step.
std::map<int64_t, Joined> join_steps(const Shares& shares) {
  std::map<int64_t, Joined> steps;
  for (const Shares::Rank& rank : shares.ranks())
    for (const StepSample& step : rank.history->raw) {
      if (!step.steady()) continue;
      Joined& joined = steps[step.step];
      const auto sync = static_cast<double>(step[Phase::kSync]);
      joined.least_sync = joined.ranks == 0 ? sync : std::min(joined.least_sync, sync);
      joined.total += static_cast<double>(step.total_ns());
      joined.sync += sync;
      ++joined.ranks;
    }
  std::erase_if(steps,
                [&](const auto& entry) { return entry.second.ranks != shares.ranks().size(); });
  return steps;
}

void finish(SyncTransfer& out, double least, double sync, double total) {
  out.sync_share = sync / total;
  out.transfer_share = least / total;
}

std::optional<SyncTransfer> from_sync_points(const Context& context) {
  const Comparison& comparison = context.run.comparison;
  if (comparison.steps < context.settings.min_steady_steps || comparison.time_ns <= 0)
    return std::nullopt;
  SyncTransfer out;
  out.first_step = comparison.first_judged_step;
  out.last_step = comparison.last_judged_step;
  out.steps = comparison.steps;
  double least = 0, sync = 0, total = 0;
  for (const SyncBlock& block : comparison.blocks) {
    out.transfer.weight.push_back(block.steps);
    out.transfer.value.push_back(block.transfer_ns / block.steps);
    out.transfer.total.push_back(block.time_ns / block.steps);
    least += block.transfer_ns;
    sync += block.wait_ns;
    total += block.time_ns;
  }
  finish(out, least, sync, total);
  return out;
}

std::optional<SyncTransfer> from_phases(const Context& context) {
  if (context.shares.ranks().size() != context.run.ranks.size() || !context.enough())
    return std::nullopt;
  const std::map<int64_t, Joined> steps = join_steps(context.shares);
  if (static_cast<int64_t>(steps.size()) < context.settings.min_steady_steps) return std::nullopt;
  SyncTransfer out;
  out.first_step = steps.begin()->first;
  out.last_step = steps.rbegin()->first;
  out.steps = static_cast<int64_t>(steps.size());
  double least = 0, sync = 0, total = 0;
  for (const auto& [number, joined] : steps) {
    const auto ranks = static_cast<double>(joined.ranks);
    out.transfer.weight.push_back(1);
    out.transfer.value.push_back(joined.least_sync);
    out.transfer.total.push_back(joined.total / ranks);
    least += joined.least_sync;
    sync += joined.sync / ranks;
    total += joined.total / ranks;
  }
  finish(out, least, sync, total);
  return out;
}

}  // namespace

bool has_sync_points(const RunHistory& run) {
  if (!run.comparison.blocks.empty()) return true;
  return std::any_of(run.ranks.begin(), run.ranks.end(), [](const RankHistory& rank) {
    return std::any_of(rank.raw.begin(), rank.raw.end(),
                       [](const StepSample& step) { return !step.syncs.empty(); });
  });
}

std::optional<SyncTransfer> sync_transfer(const Context& context) {
  if (why_not_measured(context.run, Phase::kSync) || !unseen_ranks(context.run).empty())
    return std::nullopt;
  return has_sync_points(context.run) ? from_sync_points(context) : from_phases(context);
}

}  // namespace stepscope::engine
