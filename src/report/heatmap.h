// Ranks against steps, one value a cell: how late, how long, or how long in a phase.
//
// Rows that are too many are the worst ones: with the largest mean of what is shown. Steps that are too many for the
// columns are put together as in series.h; a cell is the mean over its steps, and of a node over its ranks.
// Thread safety: pure. Bounded: kMaxRows x kMaxColumns.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/history.h"
#include "report/json_text.h"
#include "report/pieces.h"

namespace stepscope::report {

struct HeatmapQuery {
  static constexpr int64_t kColumns = 120, kMaxColumns = 400, kRows = 64, kMaxRows = 256;
  std::string value = "late";  // late, total, or a phase
  bool by_node = false;
  bool in_order = false;  // of ranks, or nodes; else the worst first
  StepRange range;
  int64_t columns = kColumns, rows = kRows;
};

struct Heatmap {
  struct Row {
    std::optional<int32_t> rank;  // none: a node
    std::string node;
    int64_t ranks = 1;
    std::vector<std::optional<double>> ms;  // a column each; none: not known
  };
  std::string value;
  bool by_node = false;
  int64_t of = 0;  // rows that there are
  std::vector<int64_t> first_step, last_step;
  std::vector<Row> rows;
  std::optional<double> max_ms;
};

Heatmap heatmap(const RunHistory& run, const HeatmapQuery& query);
json::object to_json(const Heatmap& map);

}  // namespace stepscope::report
