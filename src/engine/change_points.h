// Where a series changes its level for good, and whether it grows along a line instead.
//
// Change points by binary segmentation: the split with the most variance between its sides, kept when both sides
// hold `least_weight` and their difference is 5 standard errors, these widened for neighbours that are alike (lag-1
// autocorrelation). In the end neighbours must differ by `least_rise` of the first. Values beyond 5 spreads of the median are cut to it, so
// that a few stalls are no level.
//
// Pure. Cost: O(n log n) for a few changes.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace stepscope::engine {

struct SeriesPoint {
  double x = 0;       // first step
  double weight = 1;  // steps
  double value = 0;
};

struct LevelChange {
  size_t at = 0;                 // index of the first point of the new level
  size_t end = 0;                // one past its last point
  double before = 0, after = 0;  // means of the level before and of this one
};

// In their order, falls too.
std::vector<LevelChange> level_changes(std::span<const SeriesPoint> series, double least_rise,
                                       double least_weight);

struct Ramp {
  double start = 0, end = 0;  // values of the line
};
// A line that rises in both halves, adds `least_rise` of its start over `least_weight`, and fits better than levels do.
std::optional<Ramp> ramp(std::span<const SeriesPoint> series,
                         const std::vector<LevelChange>& levels, double least_rise,
                         double least_weight);

}  // namespace stepscope::engine
