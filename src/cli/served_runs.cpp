#include "cli/served_runs.h"

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/card_text.h"
#include "cli/hub_folder.h"
#include "cli/run_folder.h"
#include "cli/run_list.h"
#include "cli/segment_folder.h"
#include "hub/token.h"
#include "report/difference.h"
#include "report/json_text.h"
#include "report/views.h"
#include "serve/client.h"
#include "serve/request.h"

namespace stepscope::cli {
namespace json = boost::json;
namespace {

using report::member;
constexpr std::chrono::milliseconds kAgentWait{5000};
constexpr size_t kMaxStored = 4, kMaxKeyName = 80, kKeyHash = 8;
constexpr std::string_view kRuns = "/v1/runs", kLive = "/v1/live";
constexpr int64_t kLiveSummaryNs = 2'000'000'000;
// How long an answer is shared: a moment, or a few times what it took.
constexpr int64_t kShareNs = 200'000'000, kShareRest = 4;
constexpr size_t kMaxShared = 64;

std::string with_newline(const json::value& value) {
  return report::print_json(value, false) + "\n";
}

// The path in two: /v1/runs/KEY/rest. rest begins with a slash.
struct KeyPath {
  std::string_view key, rest;
};
std::optional<KeyPath> key_path(std::string_view path) {
  if (!path.starts_with(kRuns) || path.size() <= kRuns.size() || path[kRuns.size()] != '/')
    return std::nullopt;
  const std::string_view after = path.substr(kRuns.size() + 1);
  const size_t slash = after.find('/');
  if (slash == std::string_view::npos) return KeyPath{after, ""};
  return KeyPath{after.substr(0, slash), after.substr(slash)};
}

std::string started(const json::value& summary) {
  const json::value& value = member(member(summary, "run"), "started");
  return value.is_string() ? std::string(value.get_string()) : "";
}

json::object row(const std::string& key, const std::string& folder, bool live,
                 const json::value& summary) {
  const json::value& run = member(summary, "run");
  const json::value& verdict = member(summary, "verdict");
  json::object phases;
  if (const json::object* all = member(summary, "phases").if_object())
    for (const auto& entry : *all) phases[entry.key()] = member(entry.value(), "share");
  json::value name = member(run, "name");
  if (!name.is_string()) name = printable(folder.substr(folder.rfind('/') + 1), 200);
  return {{"key", key},
          {"name", std::move(name)},
          {"folder", folder},
          {"state", live ? "live" : "ended"},
          {"started", member(run, "started")},
          {"duration_s", member(run, "duration_s")},
          {"ranks", member(run, "ranks")},
          {"steps", member(member(summary, "steps"), "count")},
          {"mean_ms", member(member(summary, "steps"), "mean_ms")},
          {"samples_per_s", member(member(summary, "throughput"), "samples_per_s")},
          {"verdict",
           {{"code", member(verdict, "code")},
            {"severity", member(verdict, "severity")},
            {"title", member(verdict, "title")}}},
          {"phases", std::move(phases)}};
}

}  // namespace

std::string ServedRuns::key_of(const std::string& folder) {
  std::string key;
  for (const char c : folder.substr(folder.rfind('/') + 1).substr(0, kMaxKeyName)) {
    const bool safe = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                      c == '-' || c == '_';
    key += safe ? c : '_';
  }
  return key + "-" + hub::hex(hub::sha256(folder)).substr(0, kKeyHash);
}

std::string ServedRuns::only_key() const { return only_.empty() ? "" : key_of(only_); }

std::vector<std::string> ServedRuns::folders() const {
  if (!only_.empty()) return {only_};
  std::vector<std::string> out;
  for (const std::string& place : places_)
    for (const std::string& name : list_folder(place))
      if (const std::string folder = place + "/" + name; holds_run(folder)) out.push_back(folder);
  return out;
}

std::optional<std::string> ServedRuns::folder_of(std::string_view key) {
  if (!only_.empty()) return key == only_key() ? std::optional(only_) : std::nullopt;
  {
    const std::lock_guard lock(mutex_);
    const auto found = folders_by_key_.find(key);
    if (found != folders_by_key_.end() && holds_run(found->second)) return found->second;
  }
  std::map<std::string, std::string, std::less<>> by_key;
  for (const std::string& folder : folders()) by_key[key_of(folder)] = folder;
  const auto found = by_key.find(key);
  const auto out = found == by_key.end() ? std::nullopt : std::optional(found->second);
  const std::lock_guard lock(mutex_);
  folders_by_key_ = std::move(by_key);
  return out;
}

// Absent: nobody answers for it, or not in time.
std::optional<serve::Reply> ServedRuns::ask_live(const std::string& folder,
                                                 const serve::Request& request) {
  const auto segments = segment_folder_of(folder);
  if (!segments || !agent_alive(*segments)) return std::nullopt;
  auto reply = serve::exchange(*segments + "/api.sock", request, kAgentWait);
  return reply ? std::optional(std::move(*reply)) : std::nullopt;
}

std::optional<serve::Reply> ServedRuns::share_live(const std::string& folder,
                                                   const serve::Request& request) {
  std::shared_ptr<Shared> shared;
  {
    const std::string key = folder + "\n" + request.target;
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(shared_.begin(), shared_.end(),
                                    [&](const auto& entry) { return entry.first == key; });
    if (found != shared_.end())
      shared_.splice(shared_.begin(), shared_, found);
    else
      shared_.emplace_front(key, std::make_shared<Shared>());
    if (shared_.size() > kMaxShared) shared_.pop_back();
    shared = shared_.front().second;
  }
  const std::lock_guard lock(shared->asking);
  const int64_t begin_ns = monotonic_ns();
  if (shared->reply && begin_ns < shared->until_ns && is_live(folder)) return shared->reply;
  shared->reply = ask_live(folder, request);
  const int64_t end_ns = monotonic_ns();
  shared->until_ns = end_ns + std::max(kShareNs, kShareRest * (end_ns - begin_ns));
  return shared->reply;
}

Result<std::shared_ptr<const EndedRun>> ServedRuns::stored(const std::string& folder) {
  const std::lock_guard lock(reading_);
  const std::string stamp = EndedRun::stamp_of(folder);
  const auto found = std::find_if(stored_.begin(), stored_.end(),
                                  [&](const auto& entry) { return entry.first == folder; });
  if (found != stored_.end() && found->second->stamp() == stamp) {
    stored_.splice(stored_.begin(), stored_, found);
    return stored_.front().second;
  }
  if (found != stored_.end()) stored_.erase(found);
  auto read = EndedRun::read(folder);
  if (!read) return read.error();
  stored_.emplace_front(folder, *read);
  if (stored_.size() > kMaxStored) stored_.pop_back();
  return *read;
}

serve::Reply ServedRuns::of_run(const std::string& folder, const serve::Request& request) {
  const std::string_view target = request.target;
  const std::string_view name = target.substr(0, target.find('?'));
  const bool is_view =
      request.method == "GET" && name.starts_with("/v1/") && report::is_view(name.substr(4));
  if (auto live = is_view ? share_live(folder, request) : ask_live(folder, request))
    return std::move(*live);
  if (is_live(folder))
    return serve::error_reply(503, "the run's agent does not answer", "try again in a second");
  const auto run = stored(folder);
  if (!run) return serve::error_reply(404, run.error().message, run.error().hint);
  return (*run)->answer(request);
}

serve::Reply ServedRuns::compare(const std::string& query) {
  const auto words = serve::query_words(query.empty() ? query : query.substr(1));
  std::vector<std::shared_ptr<const EndedRun>> runs;
  for (const char* name : {"a", "b"}) {
    const auto key = words.find(name);
    const auto folder = key == words.end() ? std::nullopt : folder_of(key->second);
    if (!folder)
      return serve::error_reply(404, std::string(name) + " names no run",
                                "GET /v1/compare?a=KEY&b=KEY");
    auto run = stored(*folder);
    if (!run) return serve::error_reply(404, run.error().message, run.error().hint);
    runs.push_back(std::move(*run));
  }
  const auto a = runs[0]->history(), b = runs[1]->history();
  if (!a || !b) {
    const Error& error = (a ? b : a).error();
    return serve::error_reply(503, error.message, error.hint);
  }
  const auto difference = report::difference(**a, **b);
  if (!difference)
    return serve::error_reply(409, difference.error().message, difference.error().hint);
  return {200, "application/json", report::to_json(*difference, false) + "\n"};
}

serve::Reply ServedRuns::answer(const serve::Request& request) {
  const std::string_view target = request.target;
  const size_t question = target.find('?');
  const std::string_view path = target.substr(0, question);
  const std::string query(question == std::string_view::npos ? "" : target.substr(question));
  if (path == kRuns) {
    if (request.method != "GET")
      return serve::error_reply(405, "the list of runs is for GET", "use GET");
    return list();
  }
  if (path == "/metrics") {
    if (request.method != "GET") return serve::error_reply(405, "metrics are for GET", "use GET");
    return {200, web::kPrometheusType, web::prometheus_text(metrics(query != "?per_rank=0"))};
  }
  if (path == "/v1/compare") return compare(query);
  if (const auto parts = key_path(path)) {
    const auto folder = folder_of(parts->key);
    if (!folder)
      return serve::error_reply(404, "there is no run " + printable(parts->key, 100),
                                "GET /v1/runs");
    return of_run(*folder,
                  {request.method, "/v1" + std::string(parts->rest) + query, request.body});
  }
  if (!only_.empty() && path.starts_with("/v1/")) return of_run(only_, request);
  return serve::error_reply(404, "nothing at " + printable(path, 200), "GET /v1/runs");
}

std::optional<std::string> ServedRuns::live_run(std::string_view path) {
  if (!only_.empty() && path == kLive) return only_key();
  const auto parts = key_path(path);
  if (!parts || parts->rest != kLive.substr(3) || !folder_of(parts->key)) return std::nullopt;
  return std::string(parts->key);
}

Result<web::Site::Now> ServedRuns::now(const std::string& key, std::optional<int64_t> since) {
  const auto folder = folder_of(key);
  if (!folder) return Error{"there is no such run", ""};
  const std::string target = "/v1/tick" + (since ? "?since=" + std::to_string(*since) : "");
  const serve::Reply reply = of_run(*folder, {"GET", target, ""});
  json::error_code failed;
  const json::value value = json::parse(reply.body, failed);
  if (reply.status != 200 || failed) return Error{"the run does not answer", ""};
  Now out;
  out.ended = member(value, "state") == "ended";
  if (const json::value& step = member(value, "step"); step.is_int64()) out.step = step.get_int64();
  out.tick = trim(reply.body);
  return out;
}

Result<std::string> ServedRuns::summary(const std::string& key) {
  const auto folder = folder_of(key);
  if (!folder) return Error{"there is no such run", ""};
  serve::Reply reply = of_run(*folder, {"GET", "/v1/summary?brief", ""});
  if (reply.status != 200) return Error{"the run does not answer", ""};
  return std::string(trim(reply.body));
}

std::shared_ptr<const json::value> ServedRuns::summary_value(const std::string& folder, bool live,
                                                             report::JsonForm form) {
  const bool brief = form == report::JsonForm::kBrief;
  const std::string key = folder + (brief ? "\nbrief" : "");
  const std::string stamp =
      live ? "live " + std::to_string(monotonic_ns() / kLiveSummaryNs) : EndedRun::stamp_of(folder);
  {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(key);
    if (found != known_.end() && found->second.stamp == stamp) return found->second.summary;
  }
  std::string text;
  if (live) {
    if (auto reply =
            ask_live(folder, {"GET", brief ? "/v1/summary?brief" : "/v1/summary?compact", ""}))
      text = reply->body;
  } else if (auto ended = summary_of(folder, form)) {
    text = std::move(*ended);
  }
  json::error_code failed;
  auto value = std::make_shared<json::value>(json::parse(text, failed));
  if (failed) *value = nullptr;
  const std::lock_guard lock(mutex_);
  known_[key] = {stamp, value};
  return value;
}

std::vector<ServedRuns::Measured> ServedRuns::newest_first(report::JsonForm form) {
  std::vector<Measured> out;
  for (const std::string& folder : folders()) {
    const bool live = is_live(folder);
    out.push_back({folder, live, summary_value(folder, live, form)});
  }
  std::stable_sort(out.begin(), out.end(), [](const Measured& a, const Measured& b) {
    return started(*a.summary) > started(*b.summary);
  });
  return out;
}

std::vector<exporter::Family> ServedRuns::metrics(bool per_rank) {
  std::vector<Measured> runs = newest_first(report::JsonForm::kCompact);
  std::stable_partition(runs.begin(), runs.end(), [](const Measured& run) { return run.live; });
  if (runs.size() > kMaxMeasured) runs.resize(kMaxMeasured);
  std::vector<exporter::MeasuredRun> measured;
  for (Measured& run : runs)
    measured.push_back({key_of(run.folder), run.live, std::move(run.summary)});
  return exporter::metrics_of(measured, per_rank && rank_metrics_);
}

serve::Reply ServedRuns::list() {
  json::array runs;
  for (const Measured& run : newest_first(report::JsonForm::kBrief))
    runs.push_back(row(key_of(run.folder), run.folder, run.live, *run.summary));
  return {200, "application/json", with_newline(json::object{{"runs", std::move(runs)}})};
}

}  // namespace stepscope::cli
