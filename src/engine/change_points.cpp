#include "engine/change_points.h"

#include <algorithm>
#include <cmath>

#include "engine/median.h"
#include "engine/theil_sen.h"

namespace stepscope::engine {
namespace {

constexpr double kErrors = 5, kCut = 5, kMostAlike = 0.95;
constexpr double kPart = 0.25;  // of the rise: one side of a split may hold two levels
constexpr int kMostDepth = 6;

struct Sums {
  std::vector<double> weight, value;  // prefix sums
  double mean(size_t from, size_t to) const {
    const double w = weight[to] - weight[from];
    return w > 0 ? (value[to] - value[from]) / w : 0;
  }
};

class Segmentation {
 public:
  Segmentation(std::span<const SeriesPoint> series, double least_rise, double least_weight)
      : series_(series), least_rise_(least_rise), least_weight_(least_weight) {
    std::vector<double> values, distances;
    for (const SeriesPoint& p : series) values.push_back(p.value);
    const double middle = median(values);
    for (const double v : values) distances.push_back(std::fabs(v - middle));
    const double cut = kCut * 1.4826 * median(distances);
    sums_.weight.assign(1, 0);
    sums_.value.assign(1, 0);
    for (const SeriesPoint& p : series) {
      values_.push_back(cut > 0 ? std::clamp(p.value, middle - cut, middle + cut) : p.value);
      sums_.weight.push_back(sums_.weight.back() + p.weight);
      sums_.value.push_back(sums_.value.back() + p.weight * values_.back());
    }
  }

  // Of the mean of many values times their number, for noise whose neighbours are alike (AR(1)): from differences at
  // lags 1 and 2, which a few changes of the level hardly move.
  double long_run_variance() const {
    double one = 0, two = 0;
    const size_t n = values_.size();
    if (n < 3) return 0;
    for (size_t i = 1; i < n; ++i) one += std::pow(values_[i] - values_[i - 1], 2);
    for (size_t i = 2; i < n; ++i) two += std::pow(values_[i] - values_[i - 2], 2);
    one /= static_cast<double>(n - 1);
    two /= static_cast<double>(n - 2);
    const double alike = one > 0 ? std::clamp(two / one - 1, 0.0, kMostAlike) : 0;
    return one / 2 / (1 - alike) * (1 + alike) / (1 - alike);
  }

  std::vector<size_t> find() {
    variance_ = long_run_variance();
    split(0, series_.size(), 0);
    std::sort(cuts_.begin(), cuts_.end());
    while (drop_smallest()) {
    }
    return cuts_;
  }
  double mean(size_t from, size_t to) const { return sums_.mean(from, to); }
  double value(size_t i) const { return values_[i]; }

 private:
  // Between two levels that are hardly apart there is no change.
  bool drop_smallest() {
    size_t smallest = 0;
    double least = least_rise_;
    for (size_t i = 0; i < cuts_.size(); ++i) {
      const double before = mean(i == 0 ? 0 : cuts_[i - 1], cuts_[i]);
      const double after = mean(cuts_[i], i + 1 < cuts_.size() ? cuts_[i + 1] : series_.size());
      const double apart = std::fabs(after - before) / std::max(1.0, before);
      if (apart >= least) continue;
      least = apart;
      smallest = i + 1;
    }
    if (smallest == 0) return false;
    cuts_.erase(cuts_.begin() + static_cast<std::ptrdiff_t>(smallest - 1));
    return true;
  }

  void split(size_t from, size_t to, int depth) {
    if (depth == kMostDepth) return;
    size_t best = 0;
    double most = 0;
    for (size_t k = from + 1; k < to; ++k) {
      const double a = sums_.weight[k] - sums_.weight[from];
      const double b = sums_.weight[to] - sums_.weight[k];
      if (a < least_weight_ || b < least_weight_) continue;
      const double rise = mean(k, to) - mean(from, k);
      if (const double between = rise * rise * a * b / (a + b); between > most) {
        most = between;
        best = k;
      }
    }
    if (best == 0 || !is_real(from, best, to)) return;
    cuts_.push_back(best);
    split(from, best, depth + 1);
    split(best, to, depth + 1);
  }

  bool is_real(size_t from, size_t at, size_t to) const {
    const double before = mean(from, at), after = mean(at, to);
    if (before <= 0 || std::fabs(after - before) < kPart * least_rise_ * before) return false;
    const double error = std::sqrt(
        variance_ * (1 / static_cast<double>(at - from) + 1 / static_cast<double>(to - at)));
    return std::fabs(after - before) >= kErrors * error;
  }

  std::span<const SeriesPoint> series_;
  double least_rise_, least_weight_;
  std::vector<double> values_;
  Sums sums_;
  std::vector<size_t> cuts_;
  double variance_ = 0;
};

}  // namespace

std::vector<LevelChange> level_changes(std::span<const SeriesPoint> series, double least_rise,
                                       double least_weight) {
  Segmentation segmentation(series, least_rise, least_weight);
  const std::vector<size_t> cuts = segmentation.find();
  std::vector<LevelChange> out;
  for (size_t i = 0; i < cuts.size(); ++i) {
    const size_t from = i == 0 ? 0 : cuts[i - 1];
    const size_t end = i + 1 < cuts.size() ? cuts[i + 1] : series.size();
    out.push_back(
        {cuts[i], end, segmentation.mean(from, cuts[i]), segmentation.mean(cuts[i], end)});
  }
  return out;
}

std::optional<Ramp> ramp(std::span<const SeriesPoint> series,
                         const std::vector<LevelChange>& levels, double least_rise,
                         double least_weight) {
  double weight = 0;
  std::vector<Point> points;
  for (const SeriesPoint& p : series) {
    weight += p.weight;
    points.push_back({p.x, p.value});
  }
  if (weight < least_weight) return std::nullopt;
  const auto line = theil_sen(points);
  const std::span all(points);
  const auto first = theil_sen(all.first(points.size() / 2));
  const auto second = theil_sen(all.subspan(points.size() / 2));
  for (const auto* part : {&line, &first, &second})
    if (!*part || (*part)->slope_low <= 0) return std::nullopt;
  const Ramp out{line->at(series.front().x), line->at(series.back().x)};
  if (out.start <= 0 || out.end - out.start < least_rise * out.start) return std::nullopt;
  if (levels.empty()) return out;
  double about_line = 0, about_levels = 0;
  size_t level = 0;
  for (size_t i = 0; i < series.size(); ++i) {
    while (level < levels.size() && i >= levels[level].at) ++level;
    const double mean = level == 0 ? levels[0].before : levels[level - 1].after;
    about_line += std::fabs(series[i].value - line->at(series[i].x));
    about_levels += std::fabs(series[i].value - mean);
  }
  return about_line < about_levels ? std::optional(out) : std::nullopt;
}

}  // namespace stepscope::engine
