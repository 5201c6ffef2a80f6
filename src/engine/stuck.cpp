// STUCK: no rank of a group has moved for longer than max(stuck_s, stuck_steps x median step). Phases known to be long
// (compile, checkpoint, validation, the input of an epoch's first step) are allowed stuck_long_times as long.
//
// All ranks of the run are one group. While some of them go on, so are those that waited for each other in their last
// steps (the groups of their sync points, where every member is seen); such groups that share a rank are one.
//
// Who is late: ranks that do not wait (sync) while others do; where all wait, those at the lowest step; a process that
// has ended before all. Only of a live run.
#include "engine/stuck.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "engine/claim.h"
#include "engine/median.h"
#include "engine/words.h"

namespace stepscope::engine {
namespace {

constexpr size_t kMostListed = 16, kMostMedian = 32, kRecentSteps = 8, kMostGroups = 8;

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

// Ranks that wait for each other, none of which has moved.
struct Circle {
  std::vector<Still> still;  // by rank
  bool everybody = false;
};

double limit_ns(const RunHistory& run) {
  return std::max(run.settings.stuck_s * 1e9, run.settings.stuck_steps * median_step_ns(run));
}

bool is_still(const RankHistory& rank, const Settings& settings, double limit) {
  if (!rank.doing->alive) return true;
  const double allowed = limit * (may_take_long(rank, *rank.doing) ? settings.stuck_long_times : 1);
  return static_cast<double>(rank.doing->for_ns) >= allowed;
}

bool any_alive(const std::vector<Still>& ranks) {
  return std::any_of(ranks.begin(), ranks.end(),
                     [](const Still& one) { return one.rank->doing->alive; });
}

// Number of members of each group that the rank waited in of late.
std::map<uint64_t, uint32_t> groups_of(const RankHistory& rank) {
  std::map<uint64_t, uint32_t> out;
  size_t steps = 0;
  for (auto step = rank.raw.rbegin(); step != rank.raw.rend() && steps < kRecentSteps; ++step) {
    for (const SyncPoint& sync : step->syncs)
      if (sync.group != 0 && sync.members > 1) out[sync.group] = sync.members;
    ++steps;
  }
  return out;
}

// Of ranks that are still: the groups all of whose members are, joined where they share one.
std::vector<Circle> circles_of(const std::vector<Still>& still) {
  struct Group {
    uint32_t members = 0;
    std::vector<size_t> at;  // positions in still
  };
  std::map<uint64_t, Group> groups;
  for (size_t i = 0; i < still.size(); ++i)
    for (const auto& [group, members] : groups_of(*still[i].rank)) {
      groups[group].members = members;
      groups[group].at.push_back(i);
    }
  std::vector<size_t> first(still.size(), SIZE_MAX);  // of the circle that it is in
  for (const auto& [id, group] : groups) {
    if (group.at.size() < group.members) continue;
    size_t least = group.at.front();
    for (const size_t i : group.at) least = std::min(least, first[i]);
    std::set<size_t> joined;
    for (const size_t i : group.at)
      if (first[i] != SIZE_MAX) joined.insert(first[i]);
    for (size_t i = 0; i < first.size(); ++i)
      if (joined.contains(first[i])) first[i] = least;
    for (const size_t i : group.at) first[i] = least;
  }
  std::map<size_t, Circle> circles;
  for (size_t i = 0; i < still.size(); ++i)
    if (first[i] != SIZE_MAX) circles[first[i]].still.push_back(still[i]);
  std::vector<Circle> out;
  for (auto& [at, circle] : circles)
    if (any_alive(circle.still) && out.size() < kMostGroups) out.push_back(std::move(circle));
  return out;
}

std::vector<Circle> stuck_circles(const RunHistory& run, double limit) {
  if (!run.live) return {};
  std::vector<Still> still;
  bool all = true;
  for (const RankHistory& rank : run.ranks) {
    if (!rank.doing) continue;
    if (is_still(rank, run.settings, limit))
      still.push_back({&rank});
    else
      all = false;
  }
  if (!any_alive(still)) return {};
  if (all) return {{std::move(still), true}};
  return circles_of(still);
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

std::string nobody_moves(const Circle& circle, double for_ms) {
  if (circle.everybody) return "no rank has moved for " + milliseconds(for_ms);
  std::vector<int32_t> ranks;
  for (const Still& one : circle.still) ranks.push_back(one.rank->rank);
  return "ranks " + ranges(ranks) + " have not moved for " + milliseconds(for_ms) +
         " while the others go on";
}

std::string title(const Circle& circle, const std::vector<int32_t>& late, double for_ms) {
  const std::vector<Still>& still = circle.still;
  std::string text = nobody_moves(circle, for_ms);
  if (still.size() == 1) return text + ": " + where(*still.front().rank);
  if (late.empty()) return text + ": all wait for each other at the same step";
  const auto first = std::find_if(still.begin(), still.end(),
                                  [&](const Still& one) { return one.rank->rank == late.front(); });
  text += (late.size() == 1 ? ": rank " : ": ranks ") + ranges(late) + " " +
          (late.size() == 1 ? "is " : "are ") + where(*first->rank);
  if (!first->rank->doing->alive)
    text = nobody_moves(circle, for_ms) + ": the process of rank " + ranges(late) + " has ended";
  std::vector<int32_t> waiting;
  for (const Still& one : still)
    if (one.waits() && one.rank->doing->alive) waiting.push_back(one.rank->rank);
  if (!waiting.empty() && waiting.size() < still.size())
    text += (waiting.size() == 1 ? ", rank " : ", ranks ") + ranges(waiting) +
            (waiting.size() == 1 ? " waits" : " wait");
  return text;
}

Finding finding_of(const Circle& circle, double limit) {
  const std::vector<Still>& still = circle.still;
  int64_t for_ns = INT64_MAX;
  for (const Still& one : still)
    if (one.rank->doing->alive) for_ns = std::min(for_ns, one.rank->doing->for_ns);
  const std::vector<int32_t> late = late_ranks(still);
  Finding finding;
  finding.code = "STUCK";
  finding.severity = Severity::kCritical;
  finding.title = title(circle, late, static_cast<double>(for_ns) / 1e6);
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
  add_evidence(finding, "limit_s", limit / 1e9, "s");
  add_evidence(finding, "late_ranks", static_cast<double>(late.size()), "ranks");
  add_evidence(finding, "stuck_ranks", static_cast<double>(still.size()), "ranks");
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
  return finding;
}

}  // namespace

void stuck(const Context& context, Findings& findings) {
  const double limit = limit_ns(context.run);
  for (const Circle& circle : stuck_circles(context.run, limit))
    findings.push_back(finding_of(circle, limit));
}

std::vector<int32_t> late_when_stuck(const RunHistory& run) {
  std::vector<int32_t> out;
  for (const Circle& circle : stuck_circles(run, limit_ns(run))) {
    const std::vector<int32_t> late = late_ranks(circle.still);
    out.insert(out.end(), late.begin(), late.end());
    if (late.empty()) out.push_back(circle.still.front().rank->rank);  // all wait for each other
  }
  return out;
}

}  // namespace stepscope::engine
