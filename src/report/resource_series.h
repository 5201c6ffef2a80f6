// What the run used over time, on a grid of moments: cores and memory of each rank, or of many ranks by node.
//
// Up to kSingleRanks ranks: a series a rank and reading. Above: their sum a node (where a share: the mean), and the
// kWorst ranks with the most memory. A reading that was never taken has no series.
// Thread safety: pure. Bounded: kMaxPoints a series, kMaxNodes nodes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/history.h"
#include "report/json_text.h"

namespace stepscope::report {

struct ResourceSeries {
  static constexpr int64_t kPoints = 300, kMaxPoints = 2000;
  static constexpr size_t kSingleRanks = 16, kWorst = 4, kMaxNodes = 64;

  struct One {
    std::string name, unit;
    std::optional<int32_t> rank;  // none: the node
    std::string node;
    std::vector<std::optional<double>> values;  // by time_s
  };
  std::vector<double> time_s;  // since the first step of a rank began; below 0: before it
  std::vector<One> series;
};

ResourceSeries resource_series(const RunHistory& run, int64_t points);
// With the nodes' limits and gauges.
json::object to_json(const ResourceSeries& series, const RunHistory& run);

}  // namespace stepscope::report
