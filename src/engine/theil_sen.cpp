#include "engine/theil_sen.h"

#include <algorithm>
#include <cmath>

#include "engine/median.h"

namespace stepscope::engine {
namespace {

constexpr size_t kMinPoints = 5;
constexpr double kMostAlike = 0.5;

Point middle_of(std::span<const Point> points) {
  std::vector<double> x, y;
  for (const Point& p : points) {
    x.push_back(p.x);
    y.push_back(p.y);
  }
  return {median(std::move(x)), median(std::move(y))};
}

std::vector<Point> merge_equal_x(std::span<const Point> points) {
  std::vector<Point> out;
  for (size_t begin = 0; begin < points.size();) {
    size_t end = begin + 1;
    while (end < points.size() && points[end].x == points[begin].x) ++end;
    out.push_back(middle_of(points.subspan(begin, end - begin)));
    begin = end;
  }
  return out;
}

std::vector<Point> thin(std::vector<Point> points) {
  if (points.size() <= kMaxTheilSenPoints) return points;
  std::vector<Point> out;
  const std::span<const Point> all(points);
  for (size_t i = 0; i < kMaxTheilSenPoints; ++i) {
    const size_t begin = i * points.size() / kMaxTheilSenPoints;
    const size_t end = (i + 1) * points.size() / kMaxTheilSenPoints;
    out.push_back(middle_of(all.subspan(begin, end - begin)));
  }
  return out;
}

double nth(std::vector<double>& values, double n) {
  const auto place = values.begin() + static_cast<std::ptrdiff_t>(n);
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

double alike(const std::vector<double>& residuals) {
  double mean = 0, variance = 0, product = 0;
  for (const double r : residuals) mean += r / static_cast<double>(residuals.size());
  for (size_t i = 0; i < residuals.size(); ++i) {
    variance += (residuals[i] - mean) * (residuals[i] - mean);
    if (i > 0) product += (residuals[i] - mean) * (residuals[i - 1] - mean);
  }
  return variance > 0 ? std::clamp(product / variance, 0.0, kMostAlike) : 0;
}

}  // namespace

std::optional<Line> theil_sen(std::span<const Point> all) {
  const std::vector<Point> points = thin(merge_equal_x(all));
  if (points.size() < kMinPoints) return std::nullopt;
  std::vector<double> slopes;
  slopes.reserve(points.size() * (points.size() - 1) / 2);
  for (size_t i = 0; i < points.size(); ++i)
    for (size_t j = i + 1; j < points.size(); ++j)
      if (points[j].x != points[i].x)
        slopes.push_back((points[j].y - points[i].y) / (points[j].x - points[i].x));
  if (slopes.empty()) return std::nullopt;
  Line line;
  line.slope = median(slopes);
  std::vector<double> rest;
  for (const Point& p : points) rest.push_back(p.y - line.slope * p.x);
  const double r = alike(rest);
  line.intercept = median(rest);
  for (double& residual : rest) residual = std::fabs(residual - line.intercept);
  line.spread = 1.4826 * median(std::move(rest));

  const double n = static_cast<double>(points.size()), pairs = static_cast<double>(slopes.size());
  const double reach = 1.959964 * std::sqrt(n * (n - 1) * (2 * n + 5) / 18 * (1 + r) / (1 - r));
  const double low = std::round((pairs - reach) / 2) - 1;  // 0-based; Sen counts from 1
  const double high = std::round((pairs + reach) / 2);
  line.slope_low = low < 0 ? -HUGE_VAL : nth(slopes, low);
  line.slope_high = high >= pairs ? HUGE_VAL : nth(slopes, high);
  return line;
}

}  // namespace stepscope::engine
