#include "engine/slow_ranks.h"

#include <algorithm>

#include "engine/episode_keeper.h"
#include "engine/waiting.h"

namespace stepscope::engine {
namespace {

constexpr double kNearlyAll = 0.80;  // of the waiting is for one rank
constexpr double kOnePhase =
    0.65;  // of what it does longer: else it is but a little slower in everything

}  // namespace

std::optional<int32_t> mostly_late(const Leftover& leftover) {
  double sum = 0, most = 0;
  int32_t rank = 0;
  for (const auto& [late, cost] : leftover.late) {
    sum += cost;
    if (cost <= most) continue;
    most = cost;
    rank = late;
  }
  double phases = 0, largest = 0;
  for (const auto& [phase, ns] : leftover.phases) {
    phases += ns;
    largest = std::max(largest, ns);
  }
  if (sum <= 0 || most < kNearlyAll * leftover.cost_ns || largest < kOnePhase * phases)
    return std::nullopt;
  return rank;
}

std::set<int32_t> slow_ranks(const RunHistory& run) {
  std::set<int32_t> out;
  for (const Episode& episode : run.comparison.episodes)
    for (const int32_t position : positions_of(run, episode))
      out.insert(run.ranks[static_cast<size_t>(position)].rank);
  if (has_waiting_finding(run))
    if (const auto late = mostly_late(run.comparison.leftover)) out.insert(*late);
  if (out.size() >= run.ranks.size()) out.clear();
  return out;
}

}  // namespace stepscope::engine
