// stepscope runs: lists the runs below a folder.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <memory>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/recover.h"
#include "cli/run_folder.h"
#include "cli/run_list.h"
#include "cli/say.h"

namespace stepscope::cli {
namespace {

namespace json = boost::json;
constexpr int64_t kFinishNs = 5'000'000'000;
constexpr size_t kMostName = 40;

struct RunsOptions {
  std::string folder;
  bool json = false;
};

std::string duration_text(std::optional<double> seconds) {
  if (!seconds) return "-";
  if (*seconds < 60) return fmt::format("{:.1f} s", *seconds);
  const auto whole = static_cast<int64_t>(*seconds);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

std::string count_text(std::optional<int64_t> count) {
  return count ? std::to_string(*count) : "-";
}

std::string cut(const std::string& text, size_t most) {
  return text.size() <= most ? text : text.substr(0, most - 3) + "...";
}

std::string table(const std::vector<RunRow>& rows) {
  size_t width = 4;
  for (const RunRow& row : rows)
    width = std::max(width, cut(printable(row.name), kMostName).size());
  std::string text = fmt::format("{:<{}}  {:<15}  {:>12}  {:>5}  {:>8}  {}\n", "name", width,
                                 "started", "duration", "ranks", "steps", "verdict");
  for (const RunRow& row : rows) {
    std::string verdict = row.verdict.empty() ? "-" : printable(row.verdict);
    if (row.state != "ended") verdict += " (" + row.state + ")";
    text += fmt::format(
        "{:<{}}  {:<15}  {:>12}  {:>5}  {:>8}  {}\n", cut(printable(row.name), kMostName), width,
        row.started_wall_ns > 0 ? time_label(row.started_wall_ns) : "-",
        duration_text(row.duration_s), count_text(row.ranks), count_text(row.steps), verdict);
  }
  return text;
}

template <typename T>
json::value or_null(const std::optional<T>& value) {
  return value ? json::value(*value) : json::value(nullptr);
}
json::value or_null(const std::string& text) {
  return text.empty() ? json::value(nullptr) : json::value(text);
}

std::string list_json(const std::vector<RunRow>& rows) {
  json::array runs;
  for (const RunRow& row : rows)
    runs.push_back(json::object{{"name", row.name},
                                {"id", or_null(row.id)},
                                {"folder", row.folder},
                                {"state", row.state},
                                {"started_wall_ns", row.started_wall_ns},
                                {"duration_s", or_null(row.duration_s)},
                                {"ranks", or_null(row.ranks)},
                                {"steps", or_null(row.steps)},
                                {"exit_code", or_null(row.exit_code)},
                                {"verdict", or_null(row.verdict)},
                                {"severity", or_null(row.severity)},
                                {"title", or_null(row.title)}});
  return json::serialize(json::object{{"schema", 1}, {"runs", std::move(runs)}}) + "\n";
}

int runs(const RunsOptions& options) {
  const int64_t deadline = monotonic_ns() + kFinishNs;
  for (const std::string& problem :
       finish_dead_runs([&] { return monotonic_ns() < deadline; }).problems)
    say(problem);
  std::vector<std::string> places = {options.folder};
  if (options.folder.empty()) {
    places = run_places(absolute_path("."), current_environment());
  } else if (!is_folder(options.folder)) {
    say_error({"there is no folder " + shell_quote(printable(options.folder, 200)),
               "list this folder's: stepscope runs"});
    return kWrongUse;
  }
  std::vector<RunRow> rows;
  for (const std::string& place : places)
    for (RunRow& row : list_runs(absolute_path(place))) rows.push_back(std::move(row));
  if (options.json) {
    print(list_json(rows));
    return kFine;
  }
  if (rows.empty()) {
    say("there is no run below " + places.front());
    say_hint("record one: stepscope run python train.py");
    return kFine;
  }
  print(table(rows));
  return kFine;
}

}  // namespace

void add_runs(CLI::App& app, Action& action) {
  const auto options = std::make_shared<RunsOptions>();
  CLI::App* runs_app = app.add_subcommand("runs", "List runs, newest first");
  runs_app->add_option("DIR", options->folder,
                       "Folder that holds runs (default: ./stepscope-runs)");
  runs_app->add_flag("--json", options->json, "Print one JSON object");
  runs_app->callback([&action, options] { action = [options] { return runs(*options); }; });
}

}  // namespace stepscope::cli
