#include "cli/hub_runs.h"

#include <algorithm>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/hub_folder.h"
#include "cli/identity.h"
#include "cli/run_folder.h"
#include "cli/run_list.h"

namespace stepscope::cli {
namespace {

constexpr size_t kMaxRuns = 1000;
constexpr int kMostSuffixes = 1000;

std::string numbered(const std::string& folder, int number) {
  return number == 1 ? folder : folder + "-" + std::to_string(number);
}

}  // namespace

HubRuns::HubRuns(std::string run_dir, std::string cwd, hub::Log& log)
    : run_dir_(std::move(run_dir)), cwd_(std::move(cwd)), log_(log) {}

// A run that an earlier hub kept, and that did not end; or did, but this node is one of its own: it
// was given up too early.
std::string HubRuns::earlier_folder(const hub::pb::Join& join) const {
  std::vector<std::string> candidates;
  if (!run_dir_.empty()) {
    for (int i = 1; i < kMostSuffixes && exists(numbered(run_dir_, i)); ++i)
      candidates.push_back(numbered(run_dir_, i));
  } else {
    for (const std::string& place : run_places(cwd_, current_environment()))
      for (const std::string& name : list_folder(place)) candidates.push_back(place + "/" + name);
  }
  for (const std::string& folder : candidates) {
    if (hub_run_id(folder) != join.run_id()) continue;
    const auto history = read_history(folder);
    if (!history) continue;
    if (history->live) return folder;
    if (HubRun::knows(folder, join.instance())) return folder;
  }
  return "";
}

Result<std::string> HubRuns::new_folder(const hub::pb::Join& join, std::string& name) const {
  FolderRequest request;
  name = check_name(join.run_name()) ? join.run_name() : "run-" + time_label(wall_ns());
  request.name = name;
  request.cwd = cwd_;
  request.run_id = join.run_id();
  request.environment = current_environment();
  for (int i = 1; !run_dir_.empty() && i < kMostSuffixes; ++i) {
    request.run_dir = numbered(run_dir_, i);
    if (!holds_run(request.run_dir)) break;
  }
  auto folder = make_run_folder(request);
  if (!folder) return folder.error();
  if (folder->path.empty())
    return Error{folder->notices.empty() ? "there is no place for the run" : folder->notices[0],
                 ""};
  for (const std::string& notice : folder->notices) log_.say(notice);
  return folder->path;
}

Result<std::shared_ptr<hub::Job>> HubRuns::job_for(const hub::pb::Join& join) {
  for (const auto& run : runs_)
    if (run->job()->run().id == printable(join.run_id(), 512)) return run->job();
  if (runs_.size() >= kMaxRuns)
    return Error{"the hub has " + std::to_string(kMaxRuns) + " runs already", ""};
  const std::string earlier = earlier_folder(join);
  std::string name;
  Result<std::unique_ptr<HubRun>> made = Error{};
  if (!earlier.empty()) {
    made = HubRun::open(earlier);
    if (made) log_.say("going on with run " + (*made)->job()->run().name + " in " + earlier);
  } else {
    const auto folder = new_folder(join, name);
    if (!folder) return folder.error();
    made = HubRun::create(*folder, name, join);
    if (made) log_.say("new run " + name + " in " + *folder);
  }
  if (!made) {
    log_.say("cannot keep a run: " + made.error().message);
    return Error{"the hub cannot keep this run: " + made.error().message, made.error().hint};
  }
  any_ever_ = true;
  runs_.push_back(std::move(*made));
  return runs_.back()->job();
}

hub::pb::JobSummary HubRuns::summary_of_now(hub::Job& job) {
  for (const auto& run : runs_)
    if (run->job().get() == &job) return run->summary_of_now(monotonic_ns());
  return {};
}

void HubRuns::tick(hub::Server& server, int64_t now_ns) {
  for (auto& run : runs_) {
    if (run->job()->is_over(now_ns)) {
      server.send_summary(*run->job(), run->finish(now_ns));
      log_.say("run " + run->job()->run().name + " has ended: stepscope show " +
               shell_quote(run->folder()));
      run.reset();
    } else {
      const HubRun::News news = run->tick(now_ns);
      if (news.verdict) log_.say(*news.verdict);
      if (!news.lines.empty()) server.send_news(*run->job(), news.lines);
    }
  }
  std::erase(runs_, nullptr);
}

void HubRuns::leave(int64_t now_ns) {
  for (const auto& run : runs_) run->leave(now_ns);
  runs_.clear();
}

}  // namespace stepscope::cli
