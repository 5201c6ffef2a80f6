// A table of the ranks, or of the nodes, as they were in the newest steps: for thousands of them, in pieces.
//
// Thread safety: pure. Bounded: kMaxRows rows at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/history.h"
#include "report/json_text.h"

namespace stepscope::report {

struct RanksQuery {
  static constexpr int64_t kRows = 100, kMaxRows = 1000;
  bool by_node = false;
  std::string sort = "late_ms";  // a column, or a phase
  bool ascending = false;
  std::string filter;  // a rank's number, or a part of a node's name; empty: all
  int64_t offset = 0, limit = kRows;
};

// Means over the window. Of a node: the mean over its ranks; memory and cores are their sum, the step that of the
// rank that is furthest behind.
struct RanksRow {
  std::optional<int32_t> rank;  // none: a node
  std::string node;
  int64_t ranks = 1;
  std::string state;  // live, ended; gone: nothing tells of its process any more
  std::optional<int64_t> step;
  std::optional<double> total_ms, own_ms, late_ms;
  std::map<std::string, std::optional<double>> phase_ms;  // twelve, and the user's
  std::optional<int64_t> memory_bytes;                    // with its workers
  std::optional<double> cpu_cores;
  std::vector<double> trend_ms;  // the step's total over the run, oldest first; at most kTrend
  std::optional<Doing> doing;    // of a live rank

  static constexpr int64_t kTrend = 24;
};

struct RanksView {
  static constexpr int64_t kWindow = 100;  // steps
  bool by_node = false;
  int64_t total = 0, of = 0;  // rows that the filter leaves, and all
  int64_t window_steps =
      0;  // at most kWindow: steady steps, or where there are none those of the warm-up
  std::vector<RanksRow> rows;
};

bool is_phase_of(const RunHistory& run,
                 const std::string& name);  // one of the twelve, or the user's
bool is_ranks_column(const RunHistory& run, const std::string& name);
RanksView ranks_view(const RunHistory& run, const RanksQuery& query);
json::object to_json(const RanksView& view);

}  // namespace stepscope::report
