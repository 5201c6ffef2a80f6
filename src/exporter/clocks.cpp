#include "exporter/clocks.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

namespace stepscope::exporter {
namespace {

constexpr int64_t kSameClockNs = 1'000'000'000;
constexpr int64_t kDriftOverNs = 1'000'000'000;  // closer points tell nothing of it
constexpr double kMostDrift = 1e-2;

using Left = std::map<std::pair<uint64_t, uint32_t>, int64_t>;  // (group, index): left then
struct Meeting {
  int64_t first_ns, rank_ns;  // the same moment on both clocks
};

template <typename Step>
void add_syncs(Step from, Step end, Left& left) {
  for (size_t steps = 0; from != end && steps < Clocks::kLookedAt; ++from, ++steps)
    for (const SyncPoint& sync : from->syncs)
      if (sync.together && sync.group != 0) left[{sync.group, sync.index}] = sync.leave_ns;
}

// The first of these steps in which the ranks met.
template <typename Step>
std::optional<Meeting> meeting(Step from, Step end, const Left& first) {
  for (; from != end; ++from)
    for (const SyncPoint& sync : from->syncs)
      if (const auto it = first.find({sync.group, sync.index}); it != first.end() && sync.together)
        return Meeting{it->second, sync.leave_ns};
  return std::nullopt;
}

}  // namespace

Clocks::Line Clocks::line_of(const RankHistory& first, const RankHistory& rank) {
  Left left;
  add_syncs(first.raw.begin(), first.raw.end(), left);
  add_syncs(first.raw.rbegin(), first.raw.rend(), left);
  const auto newest = meeting(rank.raw.rbegin(), rank.raw.rend(), left);
  const auto oldest = meeting(rank.raw.begin(), rank.raw.end(), left);
  const bool one_node = rank.node == first.node;
  if (!newest || !oldest) return {0, one_node ? 0 : first.first_begin_ns - rank.first_begin_ns, 0};
  const int64_t shift_ns = newest->first_ns - newest->rank_ns;
  if (one_node && std::llabs(shift_ns) < kSameClockNs) return {};
  const int64_t apart_ns = newest->rank_ns - oldest->rank_ns;
  const auto change_ns = static_cast<double>(shift_ns - (oldest->first_ns - oldest->rank_ns));
  const double drift = apart_ns < kDriftOverNs ? 0 : change_ns / static_cast<double>(apart_ns);
  return {newest->rank_ns, shift_ns, std::fabs(drift) < kMostDrift ? drift : 0};
}

Clocks::Clocks(const RunHistory& run) {
  for (const RankHistory& rank : run.ranks)
    lines_.push_back(lines_.empty() ? Line() : line_of(run.ranks.front(), rank));
  std::optional<int64_t> start;
  const auto known = [&](size_t r, int64_t ns) {
    const int64_t at = lines_[r].of_first(ns);
    start = start ? std::min(*start, at) : at;
  };
  for (size_t r = 0; r < run.ranks.size(); ++r) {
    const RankHistory& rank = run.ranks[r];
    if (rank.steps + rank.failed_steps > 0) known(r, rank.first_begin_ns);
    if (!rank.memory.empty()) known(r, rank.memory.front().mono_ns);
    for (const OccurrenceStats& stats : rank.occurrences)
      for (const auto& one : stats.recent)
        if (one.step >= 0) known(r, one.begin_ns);
  }
  start_ns_ = start.value_or(0);
}

}  // namespace stepscope::exporter
