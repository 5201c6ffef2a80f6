#include "cli/run_list.h"

#include <sys/stat.h>

#include <algorithm>
#include <boost/json.hpp>
#include <ctime>

#include "base/file.h"
#include "base/text.h"
#include "cli/card_text.h"
#include "cli/run_folder.h"
#include "cli/segment_folder.h"
#include "engine/engine.h"
#include "report/report.h"
#include "store/store.h"

namespace stepscope::cli {
namespace {

namespace json = boost::json;

bool same_folder(const std::string& a, const std::string& b) {
  struct stat first, second;
  return ::stat(a.c_str(), &first) == 0 && ::stat(b.c_str(), &second) == 0 &&
         first.st_ino == second.st_ino && first.st_dev == second.st_dev;
}

int64_t changed_wall_ns(const std::string& path) {
  struct stat st;
  if (::stat(path.c_str(), &st) != 0) return 0;
  return int64_t{st.st_mtim.tv_sec} * 1'000'000'000 + st.st_mtim.tv_nsec;
}

const json::value* at(const json::value& summary, const char* group, const char* key) {
  const json::object* object = summary.if_object();
  const json::value* inner = object == nullptr ? nullptr : object->if_contains(group);
  object = inner == nullptr ? nullptr : inner->if_object();
  return object == nullptr ? nullptr : object->if_contains(key);
}

std::string text_at(const json::value& summary, const char* group, const char* key) {
  const json::value* value = at(summary, group, key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
}

template <typename T>
std::optional<T> number_at(const json::value& summary, const char* group, const char* key) {
  const json::value* value = at(summary, group, key);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  json::error_code error;
  const T number = value->to_number<T>(error);
  return error ? std::nullopt : std::optional(number);
}

// "2026-11-29T18:18:27Z", fractions allowed.
std::optional<int64_t> utc_ns(const std::string& text) {
  struct tm parts{};
  if (::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) == nullptr) return std::nullopt;
  return int64_t{::timegm(&parts)} * 1'000'000'000;
}

// From summary.json's text; false when it is none.
bool fill(RunRow& row, const std::string& summary_text) {
  json::error_code error;
  const json::value summary = json::parse(summary_text, error);
  if (error || !summary.is_object()) return false;
  row.state = text_at(summary, "run", "state") == "live" ? "unfinished" : "ended";
  row.name = text_at(summary, "run", "name");
  row.id = text_at(summary, "run", "id");
  row.started_wall_ns = utc_ns(text_at(summary, "run", "started")).value_or(row.started_wall_ns);
  row.duration_s = number_at<double>(summary, "run", "duration_s");
  row.ranks = number_at<int64_t>(summary, "run", "ranks");
  row.exit_code = number_at<int>(summary, "run", "exit_code");
  row.steps = number_at<int64_t>(summary, "steps", "count");
  row.verdict = text_at(summary, "verdict", "code");
  row.severity = text_at(summary, "verdict", "severity");
  row.title = text_at(summary, "verdict", "title");
  return true;
}

Result<std::string> newest(const std::vector<std::string>& places) {
  for (const std::string& place : places)
    if (const auto rows = list_runs(place); !rows.empty()) return rows.front().folder;
  return Error{"there is no run below " + places.front(),
               "record one: stepscope run python train.py"};
}

Error not_found(const std::string& run, const std::vector<std::string>& places) {
  const std::string shown = shell_quote(printable(run, 200));
  if (is_folder(run))
    return {shown + " is not a run's folder: no run.db or summary.json in it",
            "list them: stepscope runs"};
  if (exists(run))
    return {shown + " is a file, not a run's folder",
            "give the folder it is in, or: stepscope runs"};
  return {"there is no run " + shown + ": no such folder, nor a name or id below " + places.front(),
          "list them: stepscope runs"};
}

}  // namespace

std::optional<std::string> segment_folder_of(const std::string& run_folder) {
  for (const std::string& folder : segment_folders()) {
    const auto info = read_run_info(folder);
    if (info && !info->folder.empty() && same_folder(info->folder, run_folder)) return folder;
  }
  return std::nullopt;
}

bool is_live(const std::string& run_folder) {
  const auto folder = segment_folder_of(run_folder);
  return folder && (agent_alive(*folder) || any_process_alive(*folder));
}

std::string run_id_in(const std::string& run_folder) { return row_of(run_folder).id; }

Error nothing_recorded(const std::string& run_folder) {
  return {run_folder + "/run.db is empty: its agent was killed before anything was recorded",
          "stepscope runs"};
}

Result<RunHistory> read_history(const std::string& run_folder) {
  auto history = store::Store::read(run_folder);
  if (history && history->id.empty()) return nothing_recorded(run_folder);
  return history;
}

RunRow row_of(const std::string& run_folder) {
  RunRow row;
  row.folder = run_folder;
  row.name = run_folder.substr(run_folder.rfind('/') + 1);
  row.state = "damaged";
  row.started_wall_ns = changed_wall_ns(run_folder);
  const bool live = is_live(run_folder);
  const auto written = read_file(run_folder + "/summary.json");
  const bool known = written && fill(row, *written);
  if (!live && known && row.state == "ended") return row;
  if (const auto summary =
          stored_summary(run_folder))  // later than what may have been written meanwhile
    fill(row, report::to_json(*summary));
  if (live) row.state = "live";
  return row;
}

std::vector<RunRow> list_runs(const std::string& parent) {
  std::vector<RunRow> rows;
  for (const std::string& name : list_folder(parent))
    if (holds_run(parent + "/" + name)) rows.push_back(row_of(parent + "/" + name));
  std::stable_sort(rows.begin(), rows.end(), [](const RunRow& a, const RunRow& b) {
    return a.started_wall_ns > b.started_wall_ns;
  });
  return rows;
}

std::vector<std::string> run_places(const std::string& cwd, const Environment& environment) {
  std::vector<std::string> places = {cwd + "/stepscope-runs"};
  if (is_folder(places.front())) return places;
  for (const std::string& place : fallback_places(environment))
    if (is_folder(place)) places.push_back(place);
  return places;
}

Result<std::string> resolve_run(const std::string& run, const std::string& cwd,
                                const Environment& environment) {
  if (run.empty()) return newest(run_places(cwd, environment));
  // Or one that was founded a moment ago: its agent is about to make run.db.
  if (holds_run(run) || (is_folder(run) && segment_folder_of(absolute_path(run))))
    return absolute_path(run);
  std::vector<std::string> places = fallback_places(environment);
  places.insert(places.begin(), cwd + "/stepscope-runs");
  if (run.find('/') == std::string::npos) {
    for (const std::string& place : places)
      if (holds_run(place + "/" + run)) return place + "/" + run;
    for (const std::string& place : places)
      for (const RunRow& row : list_runs(place))
        if (row.id == run) return row.folder;
  }
  return not_found(run, places);
}

}  // namespace stepscope::cli
