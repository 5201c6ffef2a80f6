#include "engine/contention.h"

#include <algorithm>

#include "engine/median.h"

namespace stepscope::engine {
namespace {

constexpr size_t kMostOthers = 64, kMostSlow = 16;
constexpr double kLeastShare = 0.05, kTimesOthers = 2;

std::optional<double> mean_wait(const RankHistory& rank, std::pair<int64_t, int64_t> steps) {
  double sum = 0, count = 0;
  for (const MemorySample& sample : rank.memory) {
    if (!sample.cpu_wait_share || sample.step < steps.first || sample.step > steps.second) continue;
    sum += *sample.cpu_wait_share;
    count += 1;
  }
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

}  // namespace

bool CoreWait::stands_out() const {
  return share >= kLeastShare && share >= kTimesOthers * others_share;
}

std::optional<CoreWait> core_wait(const RunHistory& run, std::span<const int32_t> slow,
                                  std::pair<int64_t, int64_t> steps) {
  CoreWait out;
  double sum = 0, count = 0;
  for (size_t i = 0; i < std::min(slow.size(), kMostSlow); ++i)
    if (const auto wait = mean_wait(run.ranks[static_cast<size_t>(slow[i])], steps)) {
      sum += *wait;
      count += 1;
    }
  if (count == 0) return std::nullopt;
  out.share = sum / count;
  std::vector<double> others;
  const size_t stride = run.ranks.size() / kMostOthers + 1;
  for (size_t r = 0; r < run.ranks.size(); r += stride) {
    if (std::find(slow.begin(), slow.end(), static_cast<int32_t>(r)) != slow.end()) continue;
    if (const auto wait = mean_wait(run.ranks[r], steps)) others.push_back(*wait);
  }
  if (others.empty()) return std::nullopt;
  out.others_share = median(std::move(others));
  return out;
}

}  // namespace stepscope::engine
