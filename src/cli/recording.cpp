#include "cli/recording.h"

#include <sys/utsname.h>

#include <algorithm>
#include <boost/json.hpp>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/observed.h"
#include "cli/run_folder.h"
#include "engine/engine.h"
#include "model/facts.h"
#include "report/summary_bytes.h"
#include "report/tick.h"

namespace stepscope::cli {
namespace {

constexpr double kReleaseUnstored = 0.5;  // of a ring, when storing fails
constexpr int64_t kFindingsNs = 1'000'000'000;
constexpr size_t kMaxBootLog = 128 * 1024;
const report::CardStyle kPlain{.colour = false, .unicode = true, .width = 80};

std::string node_name() {
  utsname names{};
  return ::uname(&names) == 0 ? names.nodename : "localhost";
}

Settings settings_of(const RunInfo& info) {
  Settings settings;
  for (const auto& [key, value] : info.settings)
    (void)settings.set(key, value);  // of another version: ignored
  return settings;
}

std::vector<store::SegmentPosition> stored(const std::vector<agent::Position>& positions) {
  std::vector<store::SegmentPosition> out;
  for (const agent::Position& p : positions) out.push_back({p.pid, p.nonce, p.next_index, p.state});
  return out;
}

}  // namespace

Recording::Recording(std::string segment_folder, RunInfo info)
    : folder_(std::move(segment_folder)), info_(std::move(info)), segments_(folder_) {
  open_store();
  run_.name = info_.name;
  run_.id = info_.id;
  run_.folder = info_.folder;
  run_.command = info_.command;
  run_.started_wall_ns = info_.started_wall_ns;
  run_.settings = settings_of(info_);
  run_.live = true;
  for (const std::string& notice : info_.notices) note(notice);
}

void Recording::open_store() {
  const auto failed = [&](const Error& error) {
    note(error.message + ": this run is kept in memory only");
  };
  if (info_.folder.empty()) return;
  if (!exists(info_.folder + "/run.db")) {
    auto created = store::Store::create(info_.folder);
    if (!created) return failed(created.error());
    store_ = std::move(*created);
    return;
  }
  auto opened = store::Store::open(info_.folder);
  if (!opened) return failed(opened.error());
  auto history = opened->load();
  const auto positions = opened->positions();
  if (!history || !positions) return failed(history ? positions.error() : history.error());
  run_ = std::move(*history);
  std::vector<agent::Position> resume;
  for (const store::SegmentPosition& p : *positions)
    resume.push_back({p.pid, p.nonce, p.next_index, p.state});
  segments_ = agent::Segments(folder_, resume);
  store_ = std::move(*opened);
}

void Recording::note(const std::string& notice) {
  auto& notices = run_.notices;
  if (std::find(notices.begin(), notices.end(), notice) == notices.end()) notices.push_back(notice);
}

void Recording::poll(int64_t now_ns) { segments_.poll(run_, now_ns, batch_); }

std::vector<std::string> Recording::follow(int64_t now_ns) {
  refresh(now_ns, true);
  run_.comparison = engine::compare_ranks(run_);
  return live_.update(run_, now_ns, &monotonic_ns);
}

// Absent until its first reading.
NodeHistory* Recording::own_node() {
  const std::string name = node_name();
  const auto found = std::find_if(run_.nodes.begin(), run_.nodes.end(),
                                  [&](const NodeHistory& known) { return known.node == name; });
  return found == run_.nodes.end() ? nullptr : &*found;
}

void Recording::sample(int64_t now_ns) {
  const std::vector<sampler::Process> ranks = segments_.rank_processes();
  if (ranks.empty()) return;
  NodeHistory* node = own_node();
  if (node == nullptr) {
    node = &run_.nodes.emplace_back();
    node->node = node_name();
  }
  keep(sampler_.sample(ranks, now_ns, *node), now_ns);
  segments_.sample_workers(run_);
}

void Recording::sample_memory(int64_t now_ns) {
  keep(sampler_.sample_memory(segments_.rank_processes(), now_ns), now_ns);
}

void Recording::keep(std::map<int32_t, MemorySample> samples, int64_t now_ns) {
  tell_doing(now_ns);
  for (RankHistory& rank : run_.ranks) {
    const auto found = samples.find(rank.rank);
    if (found == samples.end()) continue;
    if (rank.doing) found->second.step = rank.doing->step;
    rank.add(found->second);
  }
}

bool Recording::commit(int64_t now_ns) {
  refresh(now_ns, true);
  Status done = store_ ? store_->commit(run_, {stored(batch_.positions)})
                       : Status(Error{"there is no run.db", ""});
  if (done) {
    segments_.release(batch_.positions);
    batch_.clear();
    storing_fails_ = false;
    return true;
  }
  if (store_ && !storing_fails_)
    note(done.error().message +
         ": storing failed for a while; the figures here were kept in memory");
  storing_fails_ = true;
  if (!store_ || segments_.fullest() > kReleaseUnstored) segments_.release(batch_.positions);
  return false;
}

void Recording::tell_doing(int64_t now_ns) {
  const std::vector<agent::RankNow> doing = segments_.now();
  for (RankHistory& rank : run_.ranks) {
    const auto entry = std::find_if(doing.begin(), doing.end(), [&](const agent::RankNow& now) {
      return now.rank == rank.rank && !now.phase.empty();
    });
    rank.doing.reset();
    if (entry == doing.end()) continue;
    rank.doing = {.phase = entry->phase,
                  .step = static_cast<int64_t>(entry->now.step),
                  .for_ns = std::max<int64_t>(0, now_ns - entry->now.since_ns),
                  .alive = entry->alive};
  }
}

void Recording::refresh(int64_t now_ns, bool live) {
  run_.live = live;
  if (live) tell_doing(now_ns);
  if (live && info_.started_mono_ns > 0)
    run_.duration_ns = std::max(run_.duration_ns, now_ns - info_.started_mono_ns);
  if (folder_.empty()) return;  // only run.db is left, which says what was not observed
  const auto boot_log = read_file(folder_ + "/boot.log", kMaxBootLog);
  const bool any_step =
      std::any_of(run_.ranks.begin(), run_.ranks.end(), [](const RankHistory& rank) {
        return rank.steps + rank.failed_steps + rank.incomplete_steps > 0;
      });
  run_.unobserved =
      unobserved(boot_log ? *boot_log : "", segments_.pids(), any_step, run_.ranks.size());
}

report::Summary Recording::summarize(int64_t now_ns, bool live) {
  refresh(now_ns, live);
  return report::summarize(run_, engine::diagnose(run_));
}

Status Recording::write_files(const std::string& folder, const report::Summary& summary) const {
  const Status json =
      write_file(folder + "/summary.json", report::to_json(summary) + "\n", 0644, true);
  if (!json) return json;
  return write_file(folder + "/summary.txt", report::card(summary, kPlain), 0644, true);
}

Status Recording::write_summary(int64_t now_ns, bool live) {
  if (info_.folder.empty()) return Error{"there is no run folder", ""};
  return write_files(info_.folder, summarize(now_ns, live));
}

std::string Recording::summary_json(int64_t now_ns, report::JsonForm form) {
  return report::to_json(summarize(now_ns, true), form) + "\n";
}

std::string Recording::status(int64_t now_ns, const report::CardStyle& style) {
  return report::status(summarize(now_ns, true), style);
}

std::string Recording::card(int64_t now_ns, const report::CardStyle& style) {
  return report::card(summarize(now_ns, true), style);
}

// Many viewers may ask at once: a diagnosis serves all of a second, and takes at most a tenth of the time.
const std::vector<Finding>& Recording::findings(int64_t now_ns) {
  if (now_ns < next_findings_ns_) return findings_;
  const int64_t begin_ns = monotonic_ns();
  findings_ = engine::diagnose(run_);
  next_findings_ns_ = now_ns + std::max(kFindingsNs, 10 * (monotonic_ns() - begin_ns));
  return findings_;
}

Result<std::string> Recording::view(const report::ViewQuery& query, int64_t now_ns) {
  refresh(now_ns, true);
  static const std::vector<Finding> none;
  return report::view(run_, report::needs_findings(query.view) ? findings(now_ns) : none, query);
}

std::string Recording::tick_json(int64_t now_ns, std::optional<int64_t> since_step) {
  if (info_.started_mono_ns > 0)
    run_.duration_ns = std::max(run_.duration_ns, now_ns - info_.started_mono_ns);
  int64_t last_ns = 0;
  for (const RankHistory& rank : run_.ranks) last_ns = std::max(last_ns, rank.last_end_ns);
  std::optional<double> age_s;
  if (last_ns > 0) age_s = static_cast<double>(std::max<int64_t>(0, now_ns - last_ns)) / 1e9;
  return report::tick_json(run_, since_step, age_s) + "\n";
}

Result<std::string> Recording::finish(const Ended& ended, int64_t now_ns) {
  segments_.finish(run_, now_ns, batch_);
  if (NodeHistory* node = own_node()) sampler_.count_memory_kills(*node);
  run_.exit_code = ended.exit_code;
  int64_t last_ns = 0;
  for (const RankHistory& rank : run_.ranks) last_ns = std::max(last_ns, rank.last_end_ns);
  if (ended.duration_ns > 0)
    run_.duration_ns = ended.duration_ns;
  else if (info_.started_mono_ns > 0)
    run_.duration_ns = std::max(run_.duration_ns, last_ns - info_.started_mono_ns);
  refresh(now_ns, false);
  run_.comparison = engine::compare_ranks(run_);
  if (!commit(last_ns)) segments_.release(batch_.positions);  // the folder goes away in any case
  refresh(now_ns, false);
  const std::vector<Finding> findings = engine::diagnose(run_);
  const report::Summary summary = report::summarize(run_, findings);
  if (store_)  // a failed one was said by commit
    (void)store_->finish(run_, findings, report::to_bytes(summary));
  const Status written = info_.folder.empty() ? Status(Error{"there is no run folder", ""})
                                              : write_files(info_.folder, summary);
  if (written) return info_.folder;
  return write_elsewhere(findings, written.error().message);
}

// Disk full, or the folder was removed during the run. The segments go away after this, so it is
// the last chance.
Result<std::string> Recording::write_elsewhere(const std::vector<Finding>& findings,
                                               const std::string& why) {
  const auto place =
      make_fallback_folder(info_.name.empty() ? "run" : info_.name, current_environment());
  if (!place) return Error{why + "; and " + place.error().message, place.error().hint};
  note(why + ": this run's files are in " + *place);
  run_.folder = *place;
  const report::Summary summary = report::summarize(run_, findings);
  if (auto other = store::Store::create(*place))
    if (other->commit(run_, {})) (void)other->finish(run_, findings, report::to_bytes(summary));
  if (const Status written = write_files(*place, summary); !written) return written.error();
  return *place;
}

bool Recording::first_closed() const {
  return !run_.ranks.empty() && (run_.ranks.front().facts & kFactClosed) != 0;
}

bool Recording::all_closed() const {
  if (run_.ranks.empty()) return false;
  int32_t expected = 1;
  for (const RankHistory& rank : run_.ranks) {
    if ((rank.facts & kFactClosed) == 0) return false;
    expected = std::max(expected, rank.world_size);
  }
  return static_cast<int32_t>(run_.ranks.size()) >= expected;
}

std::string Recording::health_json(int64_t now_ns) const {
  namespace json = boost::json;
  json::array ranks;
  for (const agent::RankNow& entry : segments_.now()) {
    json::object rank{{"rank", entry.rank}, {"pid", entry.pid}, {"alive", entry.alive}};
    const bool known = !entry.phase.empty();
    rank["phase"] = known ? json::value(entry.phase) : json::value(nullptr);
    rank["step"] = known ? json::value(entry.now.step) : json::value(nullptr);
    rank["since_s"] =
        known ? json::value(static_cast<double>(now_ns - entry.now.since_ns) / 1e9) : nullptr;
    ranks.push_back(std::move(rank));
  }
  const json::object health{{"schema", 1},
                            {"state", "live"},
                            {"id", run_.id},
                            {"name", run_.name},
                            {"folder", run_.folder},
                            {"version", kVersion},
                            {"storing", store_.has_value() && !storing_fails_},
                            {"ranks", std::move(ranks)}};
  return json::serialize(health) + "\n";
}

}  // namespace stepscope::cli
