// Where each step went, over the steps of the run: what a chart draws. Steps that are too many for the points asked
// for are put together, as many to a point as 1, 2, 5, 10, 20, ...; what is kept as rollups only stays one.
//
// Thread safety: pure. Bounded: kMaxPoints, whatever the run's length.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/history.h"
#include "report/json_text.h"
#include "report/pieces.h"

namespace stepscope::report {

struct SeriesQuery {
  static constexpr int64_t kPoints = 400, kMaxPoints = 2000;
  std::optional<int32_t> rank;  // none: the job, the mean over its ranks
  std::string node;             // not empty: the mean over the ranks of this node
  StepRange range;
  int64_t points = kPoints;
};

struct SeriesPoint {
  int64_t first_step = 0, last_step = 0;
  int64_t count = 0;  // steps, of the rank that has most of them
  double time_s = 0;  // its end, since the first step of the run began
  double total_ms = 0, total_min_ms = 0, total_max_ms = 0;
  std::vector<double> phase_ms;  // by Series::phases
};

struct Series {
  struct PhaseName {
    std::string name;
    bool user = false;
    bool measured = true;
  };
  std::optional<int32_t> rank;
  std::optional<int64_t> first, last;   // steps there are, whatever was asked for; none: no step
  std::optional<int64_t> raw_from;      // from here on each step is known
  std::optional<int64_t> warmup_until;  // first steady step; none: there is none yet
  std::vector<PhaseName> phases;        // twelve, then the user's by name
  std::vector<SeriesPoint> points;
};

Series series(const RunHistory& run, const SeriesQuery& query);
// The same where the run's pieces are at hand: many ranks one after the other.
Series series(const RunHistory& run, const SeriesQuery& query, Pieces& pieces);
json::object to_json(const Series& series);

// 1, 2, 5, 10, 20, ...: the least with which `range` takes at most `points` columns.
int64_t column_width(const StepRange& range, int64_t points);

}  // namespace stepscope::report
