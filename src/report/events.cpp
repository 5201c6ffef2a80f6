#include "report/events.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "engine/joined_steps.h"

namespace stepscope::report {
namespace {

constexpr std::array<std::string_view, kOccurrenceKinds> kKinds = {
    "epoch_start", "checkpoint", "validation", "compile", "profiler"};

class Collector {
 public:
  explicit Collector(const StepRange& range) : range_(range) {}

  void add_rank(const RankHistory& rank, int64_t offset) {
    for (size_t kind = 0; kind < kKinds.size(); ++kind)
      for (const OccurrenceStats::Recent& one : rank.occurrences[kind].recent)
        if (one.step >= 0)
          add(kKinds[kind], rank, one.step + offset, one.begin_ns, one.duration_ns);
    for (const StepSample& s : rank.raw) {
      const int64_t gc_ns = s[Phase::kGc];
      if (gc_ns > 0 && static_cast<double>(gc_ns) >= kGcShare * static_cast<double>(s.total_ns()))
        add("gc", rank, s.step + offset, s.begin_ns, gc_ns);
    }
  }

  std::vector<Event> take() {
    std::vector<Event> out;
    for (auto& [key, event] : longest_) {
      if (ranks_[key] > 1) event.text = "in " + std::to_string(ranks_[key]) + " ranks";
      out.push_back(std::move(event));
    }
    return out;
  }

 private:
  using Key = std::pair<std::string_view, int64_t>;  // kind, step

  void add(std::string_view kind, const RankHistory& rank, int64_t step, int64_t begin_ns,
           int64_t duration_ns) {
    if (step < range_.from || step > range_.to) return;
    const double ms = static_cast<double>(duration_ns) / 1e6;
    Event& event = longest_[{kind, step}];
    ++ranks_[{kind, step}];
    if (event.duration_ms && *event.duration_ms >= ms) return;
    event.kind = kind;
    event.rank = rank.rank;
    event.step = step;
    event.duration_ms = ms;
    if (rank.steps + rank.failed_steps > 0)
      event.time_s = static_cast<double>(begin_ns - rank.first_begin_ns) / 1e9;
  }

  const StepRange range_;
  std::map<Key, Event> longest_;
  std::map<Key, int64_t> ranks_;
};

void add_findings(const std::vector<Finding>& findings, const StepRange& range,
                  std::vector<Event>& out) {
  for (const Finding& f : findings) {
    if (!f.first_step || *f.first_step > range.to || f.last_step.value_or(range.to) < range.from)
      continue;
    Event event;
    event.kind = "finding";
    event.rank = f.rank;
    event.step = *f.first_step;
    event.last_step = f.last_step;
    event.text = f.title;
    event.finding = &f;
    out.push_back(std::move(event));
  }
}

}  // namespace

std::vector<Event> events(const RunHistory& run, const std::vector<Finding>& findings,
                          const StepRange& range) {
  Collector collector(range);
  const std::vector<int64_t> offsets = engine::step_offsets(run);
  for (size_t i = 0; i < run.ranks.size(); ++i) collector.add_rank(run.ranks[i], offsets[i]);
  std::vector<Event> out = collector.take();
  add_findings(findings, range, out);
  if (out.size() > kMostEvents) {
    std::stable_sort(out.begin(), out.end(), [](const Event& a, const Event& b) {
      if ((a.finding != nullptr) != (b.finding != nullptr)) return a.finding != nullptr;
      return a.duration_ms.value_or(0) > b.duration_ms.value_or(0);
    });
    out.resize(kMostEvents);
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Event& a, const Event& b) { return a.step < b.step; });
  return out;
}

json::object to_json(const std::vector<Event>& all) {
  json::array out;
  for (const Event& event : all) {
    const Finding* f = event.finding;
    out.push_back(
        {{"kind", text(event.kind)},
         {"rank", integer(event.rank)},
         {"step", event.step},
         {"last_step", integer(event.last_step)},
         {"time_s", rounded(event.time_s)},
         {"duration_ms", rounded(event.duration_ms)},
         {"text", text(event.text)},
         {"severity", f != nullptr ? text(severity_name(f->severity)) : json::value(nullptr)},
         {"code", f != nullptr ? text(f->code) : json::value(nullptr)},
         {"open", f != nullptr ? json::value(!f->ended) : json::value(nullptr)}});
  }
  return {{"events", std::move(out)}};
}

}  // namespace stepscope::report
