#include "cli/hub_run.h"

#include <sys/stat.h>

#include <algorithm>
#include <boost/json.hpp>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/hub_folder.h"
#include "cli/identity.h"
#include "engine/engine.h"
#include "report/summary_bytes.h"
#include "report/tick.h"
#include "ring/segment_file.h"
#include "serve/api.h"

namespace stepscope::cli {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kDiagnoseNs = kSecond / 2;
constexpr int64_t kDiagnosePause = 2;  // times what the last diagnosis took, and at least that
constexpr int64_t kSummaryPause = 10;  // times what the last summary of now took, at least a second
constexpr size_t kMaxCommand = 1000, kMaxWord = 4096;
const report::CardStyle kPlain{.colour = false, .unicode = true, .width = 80};

// A piece of the job stands among the positions, where an agent has its segments': their pids are
// positive.
store::SegmentPosition position_of(size_t number, std::string piece) {
  return {.pid = -1 - static_cast<int32_t>(number),
          .nonce = number,
          .next_index = 0,
          .state = std::move(piece)};
}

std::vector<std::string> pieces_of(std::vector<store::SegmentPosition> positions) {
  std::erase_if(positions, [](const store::SegmentPosition& p) { return p.pid >= 0; });
  std::sort(positions.begin(), positions.end(),
            [](const auto& a, const auto& b) { return a.nonce < b.nonce; });
  std::vector<std::string> pieces;
  for (store::SegmentPosition& p : positions) pieces.push_back(std::move(p.state));
  return pieces;
}

RunInfo info_of(const RunHistory& run) {
  const ring::OwnProcess own = ring::own_process();
  RunInfo info;
  info.folder = run.folder;
  info.id = run.id;
  info.name = run.name;
  info.command = run.command;
  info.settings = run.settings.effective();
  info.started_wall_ns = run.started_wall_ns;
  info.owner_pid = own.pid;
  info.owner_start = own.start_ticks;
  info.pid_namespace = own_pid_namespace();
  return info;
}

}  // namespace

HubRun::HubRun(store::Store store, RunHistory run, const std::vector<std::string>& stored,
               RunInfo info)
    : store_(std::move(store)),
      job_(std::make_shared<hub::Job>(std::move(run), stored, monotonic_ns())),
      info_(std::move(info)),
      committed_(stored) {
  job_->run().live = true;
  if (const Status met = meet(); !met)
    job_->note(met.error().message + ": other commands do not see that this run is live");
}

HubRun::~HubRun() { part(); }

void HubRun::part() {
  loop_ = serve::Loop();
  if (!meeting_folder_.empty()) remove_segment_folder(meeting_folder_);
  meeting_folder_.clear();
}

Result<std::unique_ptr<HubRun>> HubRun::create(const std::string& folder, const std::string& name,
                                               const hub::pb::Join& join) {
  auto store = store::Store::create(folder);
  if (!store) return store.error();
  if (const Status marked = mark_hub_folder(folder, join.run_id()); !marked) return marked.error();
  RunHistory run;
  run.folder = folder;
  run.name = name;
  run.id = printable(join.run_id(), 512);
  run.started_wall_ns = wall_ns();
  for (const std::string& word : join.command())
    if (run.command.size() < kMaxCommand) run.command.push_back(word.substr(0, kMaxWord));
  for (const auto& [key, value] : join.settings())
    (void)run.settings.set(key, value);  // of another version: ignored
  RunInfo info = info_of(run);
  std::unique_ptr<HubRun> out(new HubRun(std::move(*store), std::move(run), {}, std::move(info)));
  out->commit(monotonic_ns());
  return out;
}

Result<std::unique_ptr<HubRun>> HubRun::open(const std::string& folder) {
  auto store = store::Store::open(folder);
  if (!store) return store.error();
  auto run = store->load();
  if (!run) return run.error();
  auto positions = store->positions();
  if (!positions) return positions.error();
  run->folder = folder;
  RunInfo info = info_of(*run);
  return std::unique_ptr<HubRun>(new HubRun(std::move(*store), std::move(*run),
                                            pieces_of(std::move(*positions)), std::move(info)));
}

bool HubRun::knows(const std::string& folder, const std::string& instance) {
  auto store = store::Store::open(folder);
  if (!store) return false;
  auto positions = store->positions();
  if (!positions) return false;
  for (const std::string& piece : pieces_of(std::move(*positions)))
    if (hub::pb::StoredNode node; node.ParseFromString(piece) && node.instance() == instance)
      return true;
  return false;
}

Status HubRun::meet() {
  const auto root = make_segment_root();
  if (!root) return root.error();
  const std::string folder = *root + "/" + hub_meeting_name(info_.folder);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return Error{"cannot make " + folder + ": " + errno_text(), ""};
  lock_ = take_agent_lock(folder);
  if (!lock_) return Error{"another process keeps " + folder, ""};
  if (const Status written = write_run_info(folder, info_); !written) return written;
  meeting_folder_ = folder;
  const serve::Api api{.health = [this] { return health_json(); },
                       .summary =
                           [this](report::JsonForm form, bool /*fresh*/) {
                             return report::to_json(summarize(monotonic_ns(), true), form) + "\n";
                           },
                       .card =
                           [this](const report::CardStyle& style) {
                             return report::card(summarize(monotonic_ns(), true), style);
                           },
                       .status =
                           [this](const report::CardStyle& style) {
                             return report::status(summarize(monotonic_ns(), true), style);
                           },
                       .control =
                           [this](serve::ControlWord word) {
                             if (word == serve::ControlWord::kWrite)
                               (void)write_files(summarize(monotonic_ns(), true));
                           },
                       .view =
                           [this](const report::ViewQuery& query) {
                             const int64_t now = monotonic_ns();
                             job_->refresh(now);
                             return report::view(job_->run(), diagnose(now, false), query);
                           },
                       .tick =
                           [this](std::optional<int64_t> since_step) {
                             return tick_json(monotonic_ns(), since_step);
                           }};
  return loop_.listen(folder + "/api.sock",
                      [api](const serve::Request& request) { return serve::route(api, request); });
}

void HubRun::commit(int64_t now_ns) {
  committed_ns_ = now_ns;
  job_->refresh(now_ns);
  const std::vector<std::string> pieces = job_->stored();
  store::Batch batch;
  for (size_t i = 0; i < pieces.size(); ++i)
    if (i >= committed_.size() || committed_[i] != pieces[i])
      batch.positions.push_back(position_of(i, pieces[i]));
  if (const Status done = store_.commit(job_->run(), batch); !done) {
    if (!storing_fails_)
      job_->note(done.error().message +
                 ": storing failed for a while; the figures here were kept in memory");
    storing_fails_ = true;
    return;
  }
  storing_fails_ = false;
  committed_ = pieces;
}

bool HubRun::diagnosis_due(int64_t now_ns) const {
  const int64_t pause_ns = std::max(kDiagnoseNs, kDiagnosePause * diagnosing_took_ns_);
  return diagnosed_ns_ == 0 || now_ns - diagnosed_ns_ >= pause_ns;
}

const std::vector<Finding>& HubRun::diagnose(int64_t now_ns, bool now) {
  if (!now && !diagnosis_due(now_ns)) return findings_;
  const int64_t begin_ns = monotonic_ns();
  RunHistory& run = job_->run();
  run.comparison = engine::compare_ranks(run);
  findings_ = engine::diagnose(run);
  diagnosing_took_ns_ = monotonic_ns() - begin_ns;
  diagnosed_ns_ = begin_ns;
  return findings_;
}

report::Summary HubRun::summarize(int64_t now_ns, bool live) {
  job_->refresh(now_ns);
  job_->run().live = live;
  return report::summarize(job_->run(), diagnose(now_ns, !live));
}

HubRun::News HubRun::tick(int64_t now_ns) {
  if (!meeting_folder_.empty()) loop_.wait(std::chrono::milliseconds(0));
  if (now_ns - committed_ns_ >= kSecond) commit(now_ns);
  if (!diagnosis_due(now_ns)) return {};
  job_->refresh(now_ns);
  const std::vector<Finding>& findings = diagnose(now_ns, false);
  News news{.verdict = std::nullopt, .lines = live_.lines(findings)};
  const Finding& first = findings.front();
  const std::string place = first.rank ? " rank " + std::to_string(*first.rank) : "";
  if (std::exchange(verdict_, first.code + place) != first.code + place)
    news.verdict = job_->run().name + ": " + first.code + "  " + first.title;
  return news;
}

hub::pb::JobSummary HubRun::for_nodes(bool complete) {
  RunHistory& run = job_->run();
  // Their copies lie in folders of their own: they put in their paths.
  const std::string folder = std::exchange(run.folder, "");
  const report::Summary summary = report::summarize(run, findings_);
  run.folder = folder;
  hub::pb::JobSummary out;
  out.set_complete(complete);
  out.set_summary_json(report::to_json(summary));
  out.set_card(report::card(summary, kPlain));
  out.set_folder(folder);
  return out;
}

Status HubRun::write_files(const report::Summary& summary) const {
  const std::string& folder = info_.folder;
  if (const Status json =
          write_file(folder + "/summary.json", report::to_json(summary) + "\n", 0644, true);
      !json)
    return json;
  return write_file(folder + "/summary.txt", report::card(summary, kPlain), 0644, true);
}

hub::pb::JobSummary HubRun::finish(int64_t now_ns) {
  commit(now_ns);
  const report::Summary summary = summarize(now_ns, false);
  // A failed one was said by commit.
  (void)store_.finish(job_->run(), findings_, report::to_bytes(summary));
  if (const Status written = write_files(summary); !written) job_->note(written.error().message);
  part();
  return for_nodes(true);
}

void HubRun::leave(int64_t now_ns) {
  commit(now_ns);
  (void)write_files(summarize(now_ns, true));
}

hub::pb::JobSummary HubRun::summary_of_now(int64_t now_ns) {
  if (of_now_ns_ != 0 && now_ns - of_now_ns_ < std::max(kSecond, kSummaryPause * of_now_took_ns_))
    return of_now_;
  const int64_t begin_ns = monotonic_ns();
  job_->refresh(now_ns);
  (void)diagnose(now_ns, false);
  RunHistory& run = job_->run();
  const std::vector<std::string> unended = job_->unended_nodes();
  std::string names;
  for (size_t i = 0; i < unended.size() && i < 4; ++i) names += (i > 0 ? ", " : "") + unended[i];
  if (!unended.empty())
    run.notices.push_back("other nodes were still running (" + names +
                          (unended.size() > 4 ? ", ..." : "") + "): the whole run will be in " +
                          info_.folder + " of the hub");
  run.live = false;
  of_now_ = for_nodes(false);
  run.live = true;
  of_now_ns_ = monotonic_ns();
  of_now_took_ns_ = of_now_ns_ - begin_ns;
  return of_now_;
}

// The nodes' clocks are their own: the age is told by when the newest step came here.
std::string HubRun::tick_json(int64_t now_ns, std::optional<int64_t> since_step) {
  const auto newest = report::newest_step(job_->run());
  if (newest != newest_step_) newest_came_ns_ = now_ns;
  newest_step_ = newest;
  std::optional<double> age_s;
  if (newest) age_s = static_cast<double>(now_ns - newest_came_ns_) / 1e9;
  return report::tick_json(job_->run(), since_step, age_s) + "\n";
}

std::string HubRun::health_json() const {
  namespace json = boost::json;
  json::array ranks;
  for (const RankHistory& rank : job_->run().ranks) {
    json::object entry{{"rank", rank.rank}, {"pid", rank.pid}};
    entry["alive"] = rank.doing ? json::value(rank.doing->alive) : json::value(nullptr);
    entry["phase"] = rank.doing ? json::value(rank.doing->phase) : json::value(nullptr);
    entry["step"] = rank.doing ? json::value(rank.doing->step) : json::value(nullptr);
    entry["since_s"] = rank.doing ? json::value(static_cast<double>(rank.doing->for_ns) / 1e9)
                                  : json::value(nullptr);
    ranks.push_back(std::move(entry));
  }
  const json::object health{{"schema", 1},
                            {"state", "live"},
                            {"id", job_->run().id},
                            {"name", job_->run().name},
                            {"folder", info_.folder},
                            {"version", kVersion},
                            {"storing", !storing_fails_},
                            {"ranks", std::move(ranks)}};
  return json::serialize(health) + "\n";
}

}  // namespace stepscope::cli
