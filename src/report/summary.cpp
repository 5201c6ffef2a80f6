#include "report/summary.h"

#include <time.h>

#include <algorithm>
#include <array>

#include "base/file.h"
#include "base/text.h"
#include "engine/measured.h"
#include "engine/words.h"
#include "report/phases.h"
#include "report/report.h"
#include "report/resources.h"

namespace stepscope::report {
namespace {

std::string iso_time(int64_t wall_ns) {
  if (wall_ns <= 0) return "";
  const time_t seconds = wall_ns / 1'000'000'000;
  tm parts;
  if (gmtime_r(&seconds, &parts) == nullptr) return "";
  std::array<char, 40> buffer;
  const size_t size = strftime(buffer.data(), buffer.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {buffer.data(), size};
}

void fill_run(const RunHistory& run, Summary& s) {
  s.name = run.name;
  s.id = run.id;
  s.started = iso_time(run.started_wall_ns);
  s.command = run.command;
  s.exit_code = run.exit_code;
  s.live = run.live;
  s.duration_s = static_cast<double>(run.duration_ns) / 1e9;
  s.rank_count = static_cast<int64_t>(run.ranks.size());
  s.world_size = run.ranks.empty() ? 0 : engine::world_size(run);
  s.node_count = static_cast<int64_t>(run.nodes.size());
  if (!run.ranks.empty()) {
    s.python_version = run.ranks.front().python_version;
    s.torch_version = run.ranks.front().torch_version;
  }
  s.settings = run.settings.effective();
  s.unobserved = run.unobserved;
  s.notices = run.notices;
}

void fill_own(const RunHistory& run, Summary& s) {
  int64_t cost_ns = 0, cost_steps = 0;
  for (const RankHistory& r : run.ranks) {
    s.records_written += r.records_written;
    s.records_dropped += r.records_dropped;
    if (r.cost_calls == 0) continue;
    cost_ns += r.cost_ns;
    cost_steps += r.steps + r.failed_steps;
  }
  if (cost_steps > 0)
    s.cost_us_per_step = static_cast<double>(cost_ns) / 1e3 / static_cast<double>(cost_steps);
}

void fill_now(const RunHistory& run, Summary& s) {
  if (!run.live) return;
  for (const RankHistory& rank : run.ranks)
    if (const auto& doing = rank.doing)
      s.now.push_back({rank.rank, rank.node, doing->phase, doing->step,
                       static_cast<double>(doing->for_ns) / 1e9, doing->alive});
}

void fill_not_measured(const RunHistory& run, Summary& s) {
  const auto add = [&s](const std::string& what, const std::string& why) {
    const auto same = [&](const NotMeasured& n) { return n.what == what; };
    if (std::none_of(s.not_measured.begin(), s.not_measured.end(), same))
      s.not_measured.push_back({what, why});
  };
  if (engine::host_time_only(run))
    add("device time", "the parameters are on an accelerator, so what is shown is host time");
  if (const auto unseen = engine::unseen_ranks(run); !run.ranks.empty() && !unseen.empty())
    add((unseen.size() == 1 ? "rank " : "ranks ") + engine::ranges(unseen),
        unseen.size() == 1 ? "no agent reports it" : "no agent reports them");
  if (s.steps.count > 0) {
    for (const PhaseRow& phase : s.phases)
      if (!phase.measured && phase.applicable && s.steps.mean_ms) add(phase.name, phase.note);
    if (!s.samples_per_s) add("samples_per_s", "no batch with a first dimension was seen");
  }
  for (const char* name : {"cpu", "memory", "gpus"})
    if (const Reading& reading = s.resources.at(name); !reading.measured()) add(name, reading.note);
}

// A name is enough below the usual folder; elsewhere the path.
std::string run_argument(const Summary& s) {
  const size_t slash = s.folder.rfind('/');
  if (slash == std::string::npos) return s.folder;
  const std::string parent = s.folder.substr(0, slash);
  return parent.ends_with("/stepscope-runs") ? s.folder.substr(slash + 1) : s.folder;
}

std::string next_command(const Summary& s) {
  if (s.ranks.empty()) return "stepscope doctor";
  const std::string run = run_argument(s);
  return "stepscope show" + (run.empty() ? "" : " " + shell_quote(run)) + (s.live ? "" : " --json");
}

}  // namespace

Summary summarize(const RunHistory& run, const std::vector<Finding>& findings) {
  Summary s;
  fill_run(run, s);
  fill_phases(run, s);
  fill_resources(run, s);
  fill_throughput(run, s);
  fill_own(run, s);
  fill_now(run, s);
  s.loaders = loader_rows(run);
  fill_not_measured(run, s);
  s.findings = findings;
  if (findings.empty()) {
    s.verdict.code = "INSUFFICIENT_DATA";
    s.verdict.title = "nothing was diagnosed";
  } else {
    s.verdict = findings.front();
  }
  place(s, run.folder);
  return s;
}

void place(Summary& s, const std::string& folder) {
  s.folder = folder.empty() ? "" : absolute_path(folder);
  s.files.clear();
  if (!s.folder.empty())
    s.files = {{"summary_json", s.folder + "/summary.json"},
               {"summary_txt", s.folder + "/summary.txt"},
               {"run_db", s.folder + "/run.db"}};
  s.next = next_command(s);
}

}  // namespace stepscope::report
