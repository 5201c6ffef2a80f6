// STUCK: no rank has moved for longer than max(stuck_s, stuck_steps x median step). Phases known to be long (compile,
// checkpoint, validation, the input of an epoch's first step) are allowed stuck_long_times as long.
//
// Who is late: ranks that do not wait (sync) while others do; where all wait, those at the lowest step; a process that
// has ended before all. Only of a live run.
#include <algorithm>
#include <utility>

#include "engine/claim.h"
#include "engine/median.h"
#include "engine/words.h"

namespace stepscope::engine {
namespace {

constexpr size_t kMostListed = 16, kMostMedian = 32;

// The step after the last one that began an epoch as far back as the one before it did.
bool begins_epoch(const RankHistory& rank, int64_t step) {
  if (step == 0) return true;
  int64_t last = -1, before = -1;
  for (const StepSample& s : rank.raw) {
    if (s.parts.epoch_start_ns <= 0) continue;
    before = last;
    last = s.step;
  }
  return before >= 0 && step == last + (last - before);
}

bool may_take_long(const RankHistory& rank, const Doing& doing) {
  return doing.phase == "compile" || doing.phase == "checkpoint" || doing.phase == "validation" ||
         (doing.phase == "input" && begins_epoch(rank, doing.step));
}

double median_step_ns(const RunHistory& run) {
  std::vector<double> values;
  for (const RankHistory& rank : run.ranks) {
    if (values.size() > kMostMedian * kMostMedian) break;
    size_t count = 0;
    for (auto it = rank.raw.rbegin(); it != rank.raw.rend() && count < kMostMedian; ++it)
      if (it->steady()) {
        values.push_back(static_cast<double>(it->total_ns()));
        ++count;
      }
  }
  return median(std::move(values));
}

struct Still {
  const RankHistory* rank = nullptr;
  bool waits() const { return rank->doing->phase == "sync"; }
};

// Empty when some rank has moved, or nothing is known.
std::vector<Still> all_still(const Context& context, double& limit_ns) {
  const Settings& settings = context.settings;
  limit_ns = std::max(settings.stuck_s * 1e9, settings.stuck_steps * median_step_ns(context.run));
  std::vector<Still> out;
  bool any_alive = false;
  for (const RankHistory& rank : context.run.ranks) {
    if (!rank.doing) continue;
    out.push_back({&rank});
    if (!rank.doing->alive) continue;
    any_alive = true;
    const double allowed =
        limit_ns * (may_take_long(rank, *rank.doing) ? settings.stuck_long_times : 1);
    if (static_cast<double>(rank.doing->for_ns) < allowed) return {};
  }
  return any_alive ? out : std::vector<Still>();
}

std::vector<int32_t> late_ranks(const std::vector<Still>& still) {
  std::vector<int32_t> dead, busy, behind;
  int64_t least = INT64_MAX, most = 0;
  for (const Still& one : still) {
    if (!one.rank->doing->alive)
      dead.push_back(one.rank->rank);
    else if (!one.waits())
      busy.push_back(one.rank->rank);
    least = std::min(least, one.rank->doing->step);
    most = std::max(most, one.rank->doing->step);
  }
  if (!dead.empty()) return dead;
  if (!busy.empty()) return busy;
  for (const Still& one : still)
    if (least < most && one.rank->doing->step == least) behind.push_back(one.rank->rank);
  return behind;
}

std::string where(const RankHistory& rank) {
  const Doing& doing = *rank.doing;
  if (!doing.alive) return "its process has ended";
  return "in " + doing.phase + " at step " + std::to_string(doing.step) + " for " +
         milliseconds(static_cast<double>(doing.for_ns) / 1e6);
}

std::string title(const std::vector<Still>& still, const std::vector<int32_t>& late,
                  double for_ms) {
  std::string text = "no rank has moved for " + milliseconds(for_ms);
  if (still.size() == 1) return text + ": " + where(*still.front().rank);
  if (late.empty()) return text + ": all wait for each other at the same step";
  const auto first = std::find_if(still.begin(), still.end(),
                                  [&](const Still& one) { return one.rank->rank == late.front(); });
  text += (late.size() == 1 ? ": rank " : ": ranks ") + ranges(late) + " " +
          (late.size() == 1 ? "is " : "are ") + where(*first->rank);
  if (!first->rank->doing->alive)
    text = "no rank has moved for " + milliseconds(for_ms) + ": the process of rank " +
           ranges(late) + " has ended";
  std::vector<int32_t> waiting;
  for (const Still& one : still)
    if (one.waits() && one.rank->doing->alive) waiting.push_back(one.rank->rank);
  if (!waiting.empty() && waiting.size() < still.size())
    text += (waiting.size() == 1 ? ", rank " : ", ranks ") + ranges(waiting) +
            (waiting.size() == 1 ? " waits" : " wait");
  return text;
}

}  // namespace

void stuck(const Context& context, Findings& findings) {
  if (!context.run.live) return;
  double limit_ns = 0;
  const std::vector<Still> still = all_still(context, limit_ns);
  if (still.empty()) return;
  int64_t for_ns = INT64_MAX;
  for (const Still& one : still)
    if (one.rank->doing->alive) for_ns = std::min(for_ns, one.rank->doing->for_ns);
  const std::vector<int32_t> late = late_ranks(still);
  Finding finding;
  finding.code = "STUCK";
  finding.severity = Severity::kCritical;
  finding.title = title(still, late, static_cast<double>(for_ns) / 1e6);
  const int32_t named = late.empty() ? still.front().rank->rank : late.front();
  for (const Still& one : still) {
    if (one.rank->rank != named) continue;
    if (one.rank->doing->alive) finding.phase = one.rank->doing->phase;
    finding.first_step = finding.last_step = one.rank->doing->step;
    if (late.size() == 1) {
      finding.scope = Scope::kRank;
      finding.rank = named;
      if (!one.rank->node.empty()) finding.node = one.rank->node;
    }
    finding.cause = one.rank->doing->alive ? "in " + one.rank->doing->phase : "process ended";
  }
  add_evidence(finding, "stuck_s", static_cast<double>(for_ns) / 1e9, "s");
  add_evidence(finding, "limit_s", limit_ns / 1e9, "s");
  add_evidence(finding, "late_ranks", static_cast<double>(late.size()), "ranks");
  size_t listed = 0;
  for (const Still& one : still) {
    const bool is_late = std::find(late.begin(), late.end(), one.rank->rank) != late.end();
    if (!is_late || listed++ >= kMostListed) continue;
    const std::string rank = "rank_" + std::to_string(one.rank->rank);
    add_evidence(finding, rank + "_for_s", static_cast<double>(one.rank->doing->for_ns) / 1e9, "s");
    add_evidence(finding, rank + "_step", static_cast<double>(one.rank->doing->step), "");
  }
  const std::string who = late.empty() ? "each rank" : "rank " + std::to_string(named);
  finding.advice = {{"See where " + who + " stands: py-spy dump --pid of its process.",
                     std::nullopt, "The stack names the call that does not return.",
                     "The phase is known to last that long: then raise it, --set stuck_s=300."}};
  findings.push_back(std::move(finding));
}

}  // namespace stepscope::engine
