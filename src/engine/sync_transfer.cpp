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

}  // namespace

std::optional<SyncTransfer> sync_transfer(const Context& context) {
  if (why_not_measured(context.run, Phase::kSync) || !unseen_ranks(context.run).empty())
    return std::nullopt;
  if (context.shares.ranks().size() != context.run.ranks.size() || !context.enough())
    return std::nullopt;
  const std::map<int64_t, Joined> steps = join_steps(context.shares);
  if (static_cast<int64_t>(steps.size()) < context.settings.min_steady_steps) return std::nullopt;
  SyncTransfer out;
  out.first_step = steps.begin()->first;
  out.last_step = steps.rbegin()->first;
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
  out.sync_share = sync / total;
  out.transfer_share = least / total;
  return out;
}

}  // namespace stepscope::engine
