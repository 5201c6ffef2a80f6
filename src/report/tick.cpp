#include "report/tick.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "engine/joined_steps.h"
#include "report/json_text.h"
#include "report/phases.h"
#include "report/pieces.h"
#include "report/series.h"

namespace stepscope::report {
namespace {

struct Sum {
  int64_t ranks = 0;
  double time_s = 0;
  double least_ns = 0, most_ns = 0;
  std::array<double, kPhaseCount + 1> ns{};
  std::map<std::string, double> user_ns;
};

void add(Sum& sum, const StepSample& s, int64_t zero_ns) {
  const auto total_ns = static_cast<double>(s.total_ns());
  if (sum.ranks++ == 0) {
    sum.time_s = static_cast<double>(s.end_ns - zero_ns) / 1e9;
    sum.least_ns = total_ns;
  }
  sum.least_ns = std::min(sum.least_ns, total_ns);
  sum.most_ns = std::max(sum.most_ns, total_ns);
  for (size_t i = 0; i < kPhaseCount; ++i) sum.ns[i] += static_cast<double>(s.phase_ns[i]);
  sum.ns[kTotal] += total_ns;
  for (const auto& [name, ns] : s.user_phase_ns) {
    const auto builtin = phase_from_name(name);
    (builtin ? sum.ns[static_cast<size_t>(*builtin)] : sum.user_ns[name]) +=
        static_cast<double>(ns);
  }
}

// The steps of [from, to], newest first in each rank: what is older is not looked at.
Series tail(const RunHistory& run, const StepRange& range) {
  const std::vector<int64_t> offsets = engine::step_offsets(run);
  std::vector<Sum> sums(static_cast<size_t>(range.to - range.from) + 1);
  for (size_t i = 0; i < run.ranks.size(); ++i) {
    const RankHistory& rank = run.ranks[i];
    int64_t last = std::numeric_limits<int64_t>::max();
    for (auto s = rank.raw.rbegin(); s != rank.raw.rend(); ++s) {
      const int64_t step = s->step + offsets[i];
      if (step < range.from || step >= last) break;  // of an earlier process
      last = step;
      if (step <= range.to && is_timed(*s))
        add(sums[static_cast<size_t>(step - range.from)], *s, rank.first_begin_ns);
    }
  }
  Series out;
  out.last = range.to;
  const auto measured = measured_phases(run);
  for (size_t i = 0; i < kPhaseCount; ++i)
    out.phases.push_back({std::string(kPhaseNames[i]), false, measured[i]});
  std::map<std::string, double> users;
  for (const Sum& sum : sums) users.insert(sum.user_ns.begin(), sum.user_ns.end());
  for (const auto& [name, ns] : users) out.phases.push_back({name, true, true});
  for (size_t n = 0; n < sums.size(); ++n) {
    Sum& sum = sums[n];
    if (sum.ranks == 0) continue;
    const double per_ms = 1e6 * static_cast<double>(sum.ranks);
    SeriesPoint& point = out.points.emplace_back();
    point.first_step = point.last_step = range.from + static_cast<int64_t>(n);
    point.count = 1;
    point.time_s = sum.time_s;
    point.total_ms = sum.ns[kTotal] / per_ms;
    point.total_min_ms = sum.least_ns / 1e6;
    point.total_max_ms = sum.most_ns / 1e6;
    for (size_t i = 0; i < kPhaseCount; ++i) point.phase_ms.push_back(sum.ns[i] / per_ms);
    for (const auto& [name, ns] : users) point.phase_ms.push_back(sum.user_ns[name] / per_ms);
  }
  return out;
}

}  // namespace

std::optional<int64_t> newest_step(const RunHistory& run) {
  std::vector<int64_t> newest;
  const std::vector<int64_t> offsets = engine::step_offsets(run);
  for (size_t i = 0; i < run.ranks.size(); ++i)
    if (!run.ranks[i].raw.empty()) newest.push_back(run.ranks[i].raw.back().step + offsets[i]);
  if (newest.empty()) return std::nullopt;
  const auto middle = newest.begin() + static_cast<std::ptrdiff_t>((newest.size() - 1) / 2);
  std::nth_element(newest.begin(), middle, newest.end());
  return *middle;
}

std::string tick_json(const RunHistory& run, std::optional<int64_t> since,
                      std::optional<double> age_s) {
  const auto newest = newest_step(run);
  json::object out{{"type", "tick"}, {"state", run.live ? "live" : "ended"}};
  out["step"] = integer(newest);
  out["age_s"] = rounded(age_s);
  out["duration_s"] = rounded(static_cast<double>(run.duration_ns) / 1e9);
  if (since && newest && *newest != *since) {
    const bool anew = *newest < *since;  // the ranks were restarted
    const int64_t wanted = anew ? 0 : *since + 1;
    const int64_t from = std::max(wanted, *newest - kMostSteps + 1);
    json::object series = to_json(tail(run, {from, *newest}));
    if (anew || from > wanted) series["gap"] = true;
    out["series"] = std::move(series);
  }
  return print_json(out, false);
}

}  // namespace stepscope::report
