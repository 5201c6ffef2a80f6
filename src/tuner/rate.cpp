#include "tuner/rate.h"

#include <algorithm>
#include <cmath>

#include "engine/bootstrap.h"

namespace stepscope::tuner {
namespace {

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double epoch_share_ms(const LoopRun& run) {
  return run.steps_per_epoch > 0 ? run.epoch_start_ms / run.steps_per_epoch : 0;
}

// Half width of the mean's interval, as a share of it.
double half_width(const std::vector<double>& step_ms) {
  // As a ratio to something constant and larger: bootstrap_ratio is made for shares.
  const double bound = 4 * *std::max_element(step_ms.begin(), step_ms.end());
  const engine::RatioSeries series{std::vector<double>(step_ms.size(), 1.0), step_ms,
                                   std::vector<double>(step_ms.size(), bound)};
  const engine::Interval interval = engine::bootstrap_ratio({&series, 1});
  if (interval.estimate <= 0) return 1;
  return std::min(1.0, (interval.high - interval.low) / 2 / interval.estimate);
}

}  // namespace

Rate rate_of(const std::vector<LoopRun>& runs) {
  std::vector<double> step_ms, wait_ms;
  double epoch_ms = 0, fastest = INFINITY, slowest = 0;
  for (const LoopRun& run : runs) {
    if (run.step_ms.empty()) continue;
    const double share = epoch_share_ms(run);
    epoch_ms += share * static_cast<double>(run.step_ms.size());
    step_ms.insert(step_ms.end(), run.step_ms.begin(), run.step_ms.end());
    wait_ms.insert(wait_ms.end(), run.wait_ms.begin(), run.wait_ms.end());
    fastest = std::min(fastest, mean(run.step_ms) + share);
    slowest = std::max(slowest, mean(run.step_ms) + share);
  }
  if (step_ms.empty()) return {};
  const double epoch = epoch_ms / static_cast<double>(step_ms.size());
  const double whole = mean(step_ms) + epoch;
  if (whole <= 0) return {};
  Rate rate;
  rate.steps = step_ms.size();
  rate.steps_per_s = 1000 / whole;
  rate.input_share = std::clamp((mean(wait_ms) + epoch) / whole, 0.0, 1.0);
  const double width = std::min(
      0.9, std::max({half_width(step_ms), 0.75 * (slowest - fastest) / whole, kNoiseFloor}));
  rate.low = rate.steps_per_s / (1 + width);
  rate.high = rate.steps_per_s / (1 - width);
  return rate;
}

Comparison compare(const Rate& a, const Rate& b) {
  if (a.steps_per_s <= 0 || b.steps_per_s <= 0) return {a.steps_per_s > 0 ? 1.0 : -1.0, 0};
  const auto width = [](const Rate& rate) { return std::log(rate.high / rate.low) / 2; };
  return {a.steps_per_s / b.steps_per_s - 1, std::expm1(std::hypot(width(a), width(b)))};
}

}  // namespace stepscope::tuner
