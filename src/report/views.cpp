#include "report/views.h"

#include <algorithm>
#include <array>
#include <utility>

#include "report/events.h"
#include "report/heatmap.h"
#include "report/json_text.h"
#include "report/ranks_view.h"
#include "report/resource_series.h"
#include "report/series.h"
#include "report/view_words.h"

namespace stepscope::report {
namespace {

Result<json::object> series_view(const RunHistory& run, ViewWords words) {
  SeriesQuery query;
  query.rank = words.rank(run);
  query.range = words.range();
  query.points = words.number("points", SeriesQuery::kPoints, 1, SeriesQuery::kMaxPoints);
  if (const Status fine = words.done(); !fine) return fine.error();
  return to_json(series(run, query));
}

Result<json::object> ranks_view_of(const RunHistory& run, ViewWords words) {
  RanksQuery query;
  query.by_node = words.one_of("by", {"rank", "node"}) == "node";
  const auto column = words.text("sort");
  if (column) query.sort = *column;
  const bool up = query.sort == "rank" || query.sort == "node" || query.sort == "state";
  query.ascending = words.one_of("order", {up ? "asc" : "desc", up ? "desc" : "asc"}) == "asc";
  query.filter = words.text("filter").value_or("");
  query.offset = words.number("offset", 0, 0, 1'000'000'000);
  query.limit = words.number("limit", RanksQuery::kRows, 0, RanksQuery::kMaxRows);
  if (column && !is_ranks_column(run, *column))
    words.refuse("sort", *column,
                 "rank, node, state, step, total_ms, own_ms, late_ms, memory_bytes, cpu_cores, or "
                 "a phase's name");
  if (const Status fine = words.done(); !fine) return fine.error();
  return to_json(ranks_view(run, query));
}

Result<json::object> heatmap_view(const RunHistory& run, ViewWords words) {
  HeatmapQuery query;
  const auto value = words.text("value");
  if (value) query.value = *value;
  query.by_node = words.one_of("by", {"rank", "node"}) == "node";
  query.in_order = words.one_of("order", {"worst", "rank"}) == "rank";
  query.range = words.range();
  query.columns = words.number("columns", HeatmapQuery::kColumns, 1, HeatmapQuery::kMaxColumns);
  query.rows = words.number("rows", HeatmapQuery::kRows, 1, HeatmapQuery::kMaxRows);
  if (query.value != "late" && query.value != "total" && !is_phase_of(run, query.value))
    words.refuse("value", query.value, "late, total, or a phase's name");
  if (const Status fine = words.done(); !fine) return fine.error();
  return to_json(heatmap(run, query));
}

Result<json::object> resources_view(const RunHistory& run, ViewWords words) {
  const int64_t points =
      words.number("points", ResourceSeries::kPoints, 1, ResourceSeries::kMaxPoints);
  if (const Status fine = words.done(); !fine) return fine.error();
  return to_json(resource_series(run, points), run);
}

Result<json::object> events_view(const RunHistory& run, const std::vector<Finding>& findings,
                                 ViewWords words) {
  const StepRange range = words.range();
  if (const Status fine = words.done(); !fine) return fine.error();
  return to_json(events(run, findings, range));
}

struct Known {
  std::string_view name;
  Result<json::object> (*make)(const RunHistory&, const std::vector<Finding>&, ViewWords);
};
// A view that takes no findings, as one that does.
template <Result<json::object> (*make)(const RunHistory&, ViewWords)>
Result<json::object> plain(const RunHistory& run, const std::vector<Finding>&, ViewWords words) {
  return make(run, std::move(words));
}
constexpr std::array kViews = {
    Known{"series", &plain<series_view>}, Known{"ranks", &plain<ranks_view_of>},
    Known{"heatmap", &plain<heatmap_view>}, Known{"resources", &plain<resources_view>},
    Known{"events", &events_view}};

}  // namespace

bool is_view(std::string_view name) {
  return std::any_of(kViews.begin(), kViews.end(),
                     [&](const Known& known) { return known.name == name; });
}

std::string view_names() {
  std::string names;
  for (const Known& known : kViews) names += (names.empty() ? "" : ", ") + std::string(known.name);
  return names;
}

bool needs_findings(std::string_view view) { return view == "events"; }

Result<std::string> view(const RunHistory& run, const std::vector<Finding>& findings,
                         const ViewQuery& query) {
  for (const Known& known : kViews) {
    if (known.name != query.view) continue;
    auto made = known.make(run, findings, ViewWords(query));
    if (!made) return made.error();
    return print_json(*made, false) + "\n";
  }
  return Error{"there is no view " + query.view, "one of: " + view_names()};
}

}  // namespace stepscope::report
