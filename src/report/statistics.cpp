#include "report/statistics.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace stepscope::report {
namespace {

struct Point {
  double ns;
  double weight;
};

constexpr int kMostPoints = 20;

// Quantile function of one rollup: straight from minimum to median, then median + (max - median)
// v^k, with k such that the mean is that of the block: one spike in a thousand steps gives a large
// k and leaves the 95th percentile alone.
void spread(const StepBlock& b, std::vector<Point>& points) {
  const auto min = static_cast<double>(b.min_ns[kTotal]),
             median = static_cast<double>(b.median_ns[kTotal]),
             max = static_cast<double>(b.max_ns[kTotal]);
  const double upper_mean = 2 * b.mean_ns[kTotal] - (min + median) / 2;
  const double k =
      upper_mean > median ? std::clamp((max - median) / (upper_mean - median) - 1, 1.0, 1e6) : 1e6;
  const int n = static_cast<int>(std::min<int64_t>(b.count, kMostPoints));
  for (int i = 0; i < n; ++i) {
    const double u = (i + 0.5) / n;
    const double ns =
        u <= 0.5 ? min + (median - min) * 2 * u : median + (max - median) * std::pow(2 * u - 1, k);
    points.push_back({ns, static_cast<double>(b.count) / n});
  }
}

double exact(std::vector<Point>& points, double q) {
  const double at = q * static_cast<double>(points.size() - 1);
  const auto below = static_cast<size_t>(at);
  const double low = points[below].ns;
  const double high = points[std::min(below + 1, points.size() - 1)].ns;
  return low + (high - low) * (at - static_cast<double>(below));
}

}  // namespace

Means means_of(const std::vector<StepBlock>& blocks) {
  Means means;
  double count = 0;
  for (const StepBlock& b : blocks) {
    const auto weight = static_cast<double>(b.count);
    count += weight;
    for (size_t i = 0; i <= kTotal; ++i) means.phase_ns[i] += b.mean_ns[i] * weight;
    for (const auto& [name, ns] : b.part_mean_ns) means.part_ns[name] += ns * weight;
    for (const auto& [name, ns] : b.user_mean_ns) {
      const auto builtin = phase_from_name(name);
      (builtin ? means.phase_ns[static_cast<size_t>(*builtin)] : means.user_ns[name]) +=
          ns * weight;
    }
  }
  if (count <= 0) return means;
  for (double& ns : means.phase_ns) ns /= count;
  for (auto* named : {&means.user_ns, &means.part_ns})
    for (auto& [name, ns] : *named) ns /= count;
  return means;
}

double quantile_ns(const std::vector<StepBlock>& blocks, double q) {
  std::vector<Point> points;
  double total = 0;
  for (const StepBlock& b : blocks) {
    total += static_cast<double>(b.count);
    if (b.count == 1)
      points.push_back({b.mean_ns[kTotal], 1});
    else
      spread(b, points);
  }
  std::sort(points.begin(), points.end(),
            [](const Point& a, const Point& b) { return a.ns < b.ns; });
  if (points.empty()) return 0;
  if (all_single(blocks)) return exact(points, q);
  double passed = 0;
  for (const Point& p : points) {
    passed += p.weight;
    if (passed >= q * total) return p.ns;
  }
  return points.back().ns;
}

bool all_single(const std::vector<StepBlock>& blocks) {
  return std::all_of(blocks.begin(), blocks.end(), [](const StepBlock& b) { return b.count == 1; });
}

std::optional<double> mean_of(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

}  // namespace stepscope::report
