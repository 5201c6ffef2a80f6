// A straight line through points of which many may be wild: the median of the slopes of all pairs
// (Theil 1950, Sen 1968), with Sen's 95 % interval from the variance of Kendall's S. Neighbours
// that are alike tell less: the interval is widened by sqrt((1 + r) / (1 - r)), r the
// autocorrelation of the residuals at lag 1 (as Hamed and Rao 1998 do for ranks), at most 0.5,
// since stairs are alike too and yet go up.
//
// Thread safety: pure. More than kMaxPoints points are thinned to medians of neighbours first, so
// that the cost is bounded (20,000 pairs, about 0.5 ms).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace stepscope::engine {

inline constexpr size_t kMaxTheilSenPoints = 200;

struct Point {
  double x = 0, y = 0;
};

struct Line {
  double slope = 0;
  double slope_low = 0, slope_high = 0;  // 95 % interval
  double intercept = 0;                  // median of y - slope * x
  double spread = 0;  // of the points about the line: 1.4826 MAD, a normal's standard deviation
  double at(double x) const { return intercept + slope * x; }
};

// Points in order of x. Neighbours of the same x are one: their median. None under 5 different x:
// no interval exists.
std::optional<Line> theil_sen(std::span<const Point> points);

}  // namespace stepscope::engine
