#include "engine/bootstrap.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace stepscope::engine {
namespace {

constexpr size_t kResamples = 400;
constexpr uint64_t kSeed = 0x5745'5053'4554'5301;

struct Sums {
  double weight = 0, value = 0, total = 0;
};

// Prefix sums over the rank's blocks, run on past the end by one drawn block, so that a draw that
// wraps round is one subtraction as well.
struct RankSums {
  std::vector<Sums> prefix;
  size_t blocks = 0;
  size_t length = 1;  // of one draw
};

class SplitMix64 {  // Steele, Lea, Flood 2014
 public:
  double unit() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
  }

 private:
  uint64_t state_ = kSeed;
};

RankSums sum_up(const RatioSeries& series, size_t draws) {
  RankSums out;
  out.blocks = series.weight.size();
  out.length = std::max<size_t>(1, (out.blocks + draws / 2) / draws);
  out.prefix.resize(out.blocks + out.length + 1);
  for (size_t i = 0; i < out.blocks + out.length; ++i) {
    const size_t at = i % out.blocks;
    const double w = series.weight[at];
    const Sums& before = out.prefix[i];
    out.prefix[i + 1] = {before.weight + w, before.value + w * series.value[at],
                         before.total + w * series.total[at]};
  }
  return out;
}

double ratio(const std::vector<Sums>& ranks) {
  double value = 0, total = 0;
  for (const Sums& s : ranks) {
    if (s.weight <= 0) continue;
    value += s.value / s.weight;
    total += s.total / s.weight;
  }
  return total > 0 ? value / total : 0;
}

// 97.5 % quantile of Student's t over that of the normal (Cornish-Fisher, within 1 % from 3 degrees
// on).
double student_widening(size_t blocks) {
  constexpr double z = 1.959964;
  constexpr double z3 = z * z * z, z5 = z3 * z * z;
  const double v = static_cast<double>(blocks - 1);
  const double t = z + (z3 + z) / (4 * v) + (5 * z5 + 16 * z3 + 3 * z) / (96 * v * v);
  return t / z * std::sqrt((v + 1) / v);
}

}  // namespace

Interval bootstrap_ratio(std::span<const RatioSeries> ranks) {
  size_t longest = 0;
  for (const RatioSeries& rank : ranks) longest = std::max(longest, rank.weight.size());
  if (longest == 0) return {};
  const auto block = static_cast<size_t>(std::lround(std::cbrt(static_cast<double>(longest))));
  const size_t draws = (longest + block - 1) / block;

  std::vector<RankSums> sums;
  std::vector<Sums> whole;
  for (const RatioSeries& rank : ranks) {
    if (rank.weight.empty()) continue;
    sums.push_back(sum_up(rank, draws));
    whole.push_back(sums.back().prefix[sums.back().blocks]);
  }
  const double estimate = ratio(whole);
  if (draws < 2) return {estimate, 0, 1};

  SplitMix64 random;
  std::array<double, kResamples> resampled;
  for (double& result : resampled) {
    std::fill(whole.begin(), whole.end(), Sums{});
    for (size_t draw = 0; draw < draws; ++draw) {
      const double place = random.unit();
      for (size_t r = 0; r < sums.size(); ++r) {
        const auto begin = static_cast<size_t>(place * static_cast<double>(sums[r].blocks));
        const Sums& from = sums[r].prefix[begin];
        const Sums& to = sums[r].prefix[begin + sums[r].length];
        whole[r].weight += to.weight - from.weight;
        whole[r].value += to.value - from.value;
        whole[r].total += to.total - from.total;
      }
    }
    result = ratio(whole);
  }
  std::sort(resampled.begin(), resampled.end());
  const double widen = student_widening(draws);
  const double low = resampled[kResamples / 40 - 1], high = resampled[kResamples - kResamples / 40];
  return {estimate, std::clamp(estimate - (estimate - low) * widen, 0.0, 1.0),
          std::clamp(estimate + (high - estimate) * widen, 0.0, 1.0)};
}

}  // namespace stepscope::engine
