// The Trace Event format. A process a rank (pid = rank + 1: 0 is the idle process to Perfetto), in it the threads
//
//   steps     [ step 12                                  ][ step 13 ...
//             [ input ][ forward ][ backward ][ sync ][o ]                 lengths measured, places not: in their order
//   waits             [ waits ]   where they were: ready to leave
//   older     [ steps 0-9, mean of 10                    ]   rollups
//
// and counters of memory and cores. Findings and occurrences are instants.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <limits>
#include <string>

#include "base/version.h"
#include "exporter/clocks.h"
#include "exporter/exporter.h"
#include "exporter/step_phases.h"
#include "report/json_text.h"

namespace stepscope::exporter {
namespace {

namespace json = boost::json;
constexpr std::array<const char*, kOccurrenceKinds> kOccurrences = {
    "epoch start", "checkpoint", "validation", "compile", "profiler"};
constexpr int64_t kThreads = 10;  // numbers a rank

std::string quoted(std::string_view text) { return json::serialize(report::text(text)); }

class Trace {
 public:
  Trace(const RunHistory& run, const std::vector<Finding>& findings, Output& out)
      : run_(run), findings_(findings), out_(out), clocks_(run) {
    for (size_t p = 0; p < kPhaseCount; ++p) names_[p] = quoted(kPhaseNames[p]);
  }

  void write() {
    out_.write("{\"displayTimeUnit\":\"ms\",\"otherData\":{\"run\":" + quoted(run_.name) +
               ",\"stepscope\":" + quoted(kVersion) +
               ",\"phases\":\"lengths are measured; places in the step are not: they are in their "
               "order\"},\n\"traceEvents\":[");
    for (size_t r = 0; r < run_.ranks.size() && !out_.failed(); ++r) rank(r);
    for (const Finding& finding : findings_) instant(finding);
    out_.write("\n]}\n");
  }

 private:
  void event(const std::string& body) {
    out_.write(first_ ? "\n{" : ",\n{");
    out_.write(body);
    out_.write("}");
    first_ = false;
  }

  static std::string us(int64_t ns) {
    const int64_t size = ns < 0 ? -ns : ns;
    return fmt::format("{}{}.{:03}", ns < 0 ? "-" : "", size / 1000, size % 1000);
  }
  std::string place(size_t r, int thread) const {
    const int64_t pid = int64_t{run_.ranks[r].rank} + 1;
    return fmt::format("\"pid\":{},\"tid\":{}", pid, pid * kThreads + thread);
  }
  void name(size_t r, int thread, const char* what, const std::string& text) {
    event(fmt::format("\"ph\":\"M\",\"name\":\"{}\",{},\"args\":{{\"name\":{}}}", what,
                      place(r, thread), quoted(text)));
  }

  void rank(size_t r) {
    const RankHistory& rank = run_.ranks[r];
    const std::string where = rank.node.empty() ? "" : " (" + rank.node + ")";
    name(r, 1, "process_name", "rank " + std::to_string(rank.rank) + where);
    event(fmt::format(
        "\"ph\":\"M\",\"name\":\"process_sort_index\",{},\"args\":{{\"sort_index\":{}}}",
        place(r, 1), rank.rank));
    name(r, 1, "thread_name", "steps");
    bool waits = false;
    int64_t waited_ns = std::numeric_limits<int64_t>::min();
    for (const StepSample& sample : rank.raw) {
      step(r, sample);
      for (const SyncPoint& sync : sample.syncs) {
        waits = true;
        // Slices of a track may not overlap; two waits at once are the rest of the second.
        const int64_t begin_ns = std::max(sync.ready_ns, waited_ns);
        waited_ns = std::max(waited_ns, sync.leave_ns);
        slice(r, 2, "\"waits\"", "wait", begin_ns, sync.leave_ns,
              sync.together ? "" : "\"together\":false");
      }
      if (out_.failed()) return;
    }
    if (waits) name(r, 2, "thread_name", "waits for other ranks");
    older(r);
    occurrences(r);
    counters(r);
  }

  // Both ends on the joined clock, so that what follows each other there does so here.
  void slice(size_t r, int thread, const std::string& quoted_name, const char* category,
             int64_t begin_ns, int64_t end_ns, const std::string& arguments) {
    const int64_t from_ns = clocks_.since_start_ns(r, begin_ns);
    const int64_t to_ns = clocks_.since_start_ns(r, end_ns);
    event(fmt::format("\"ph\":\"X\",\"name\":{},\"cat\":\"{}\",{},\"ts\":{},\"dur\":{}{}",
                      quoted_name, category, place(r, thread), us(from_ns),
                      us(std::max<int64_t>(to_ns - from_ns, 0)),
                      arguments.empty() ? "" : ",\"args\":{" + arguments + "}"));
  }

  void step(size_t r, const StepSample& s) {
    std::string arguments = fmt::format("\"step\":{}", s.step);
    if (s.samples) arguments += fmt::format(",\"samples\":{}", *s.samples);
    for (const auto& [flag, word] : {std::pair{s.warmup, "warmup"},
                                     {s.failed, "failed"},
                                     {s.profiled, "profiled"},
                                     {s.compiled, "compiled"},
                                     {s.paused, "paused"},
                                     {s.incomplete, "incomplete"}})
      if (flag) arguments += fmt::format(",\"{}\":true", word);
    slice(r, 1, fmt::format("\"step {}\"", s.step), "step", s.begin_ns, s.end_ns, arguments);
    int64_t at_ns = s.begin_ns;
    const auto phase = [&](const std::string& name, const char* category, int64_t ns) {
      // Phases add up to the step; where a torn record says otherwise, they stay inside it.
      const int64_t end_ns = std::min(at_ns + ns, s.end_ns);
      if (end_ns > at_ns) slice(r, 1, name, category, at_ns, end_ns, "");
      at_ns = std::max(at_ns, end_ns);
    };
    const StepPhases phases = phases_of(s);
    for (size_t p = 0; p < kPhaseCount; ++p) phase(names_[p], "phase", phases.ns[p]);
    for (const auto& [name, ns] : phases.user_ns) phase(quoted(name), "user phase", ns);
  }

  void older(size_t r) {
    bool any = false;
    for (const StepBlock& block : run_.ranks[r].steady_blocks()) {
      if (block.count <= 1) continue;
      any = true;
      std::string arguments = fmt::format("\"steps\":{},\"mean_ms\":{:.6f}", block.count,
                                          block.mean_ns[kPhaseCount] / 1e6);
      for (size_t p = 0; p < kPhaseCount; ++p)
        if (block.mean_ns[p] > 0)
          arguments += fmt::format(",\"{}_ms\":{:.6f}", kPhaseNames[p], block.mean_ns[p] / 1e6);
      slice(r, 3, fmt::format("\"steps {}-{}\"", block.first_step, block.last_step), "older",
            block.begin_ns, block.end_ns, arguments);
      if (out_.failed()) return;
    }
    if (any) name(r, 3, "thread_name", "older steps, together");
  }

  void occurrences(size_t r) {
    for (size_t kind = 0; kind < kOccurrenceKinds; ++kind)
      for (const auto& one : run_.ranks[r].occurrences[kind].recent) {
        if (one.step < 0) continue;
        event(fmt::format(
            "\"ph\":\"i\",\"s\":\"t\",\"name\":\"{}\",\"cat\":\"occurrence\",{},\"ts\":{},"
            "\"args\":{{\"step\":{},\"duration_ms\":{:.6f}}}",
            kOccurrences[kind], place(r, 1), us(clocks_.since_start_ns(r, one.begin_ns)), one.step,
            static_cast<double>(one.duration_ns) / 1e6));
      }
  }

  void counters(size_t r) {
    for (const MemorySample& m : run_.ranks[r].memory) {
      const std::string at = us(clocks_.since_start_ns(r, m.mono_ns));
      std::string memory;
      for (const auto& [name, value] : {std::pair{"process", m.rss_bytes},
                                        {"workers", m.worker_pss_bytes},
                                        {"device", m.device_allocated_bytes}})
        if (value) memory += fmt::format("{}\"{}\":{}", memory.empty() ? "" : ",", name, *value);
      counter(r, "memory (bytes)", at, memory);
      if (m.cpu_cores) counter(r, "cpu (cores)", at, fmt::format("\"used\":{:.4f}", *m.cpu_cores));
      if (m.cpu_wait_share)
        counter(r, "waits for a core (share)", at,
                fmt::format("\"share\":{:.4f}", *m.cpu_wait_share));
      if (out_.failed()) return;
    }
  }
  void counter(size_t r, const char* name, const std::string& at, const std::string& values) {
    if (values.empty()) return;
    event(fmt::format("\"ph\":\"C\",\"name\":\"{}\",{},\"ts\":{},\"args\":{{{}}}", name,
                      place(r, 1), at, values));
  }

  // Begin of the step, or of what is left of it.
  int64_t begin_ns(const RankHistory& rank, int64_t step) const {
    const auto it = std::lower_bound(rank.raw.begin(), rank.raw.end(), step,
                                     [](const StepSample& s, int64_t n) { return s.step < n; });
    const bool kept = !rank.raw.empty() && rank.raw.front().step <= step;
    if (kept) return it == rank.raw.end() ? rank.last_end_ns : it->begin_ns;
    int64_t at_ns = rank.first_begin_ns;
    for (const StepBlock& block : rank.steady_blocks())
      if (block.first_step <= step) at_ns = block.begin_ns;
    return at_ns;
  }

  void instant(const Finding& f) {
    if (run_.ranks.empty()) return;
    size_t r = 0;
    for (size_t i = 0; i < run_.ranks.size(); ++i)
      if (f.rank == run_.ranks[i].rank) r = i;
    const int64_t at_ns = begin_ns(run_.ranks[r], f.first_step.value_or(0));
    event(fmt::format(
        "\"ph\":\"i\",\"s\":\"{}\",\"name\":{},\"cat\":\"finding\",{},\"ts\":{},\"args\":{{"
        "\"title\":{},\"severity\":{},\"confidence\":{}}}",
        f.rank ? "p" : "g", quoted(f.code), place(r, 1), us(clocks_.since_start_ns(r, at_ns)),
        quoted(f.title), quoted(report::severity_name(f.severity)), quoted(f.confidence)));
  }

  const RunHistory& run_;
  const std::vector<Finding>& findings_;
  Output& out_;
  const Clocks clocks_;
  std::array<std::string, kPhaseCount> names_;
  bool first_ = true;
};

}  // namespace

void write_perfetto(const RunHistory& run, const std::vector<Finding>& findings, Output& out) {
  Trace(run, findings, out).write();
}

}  // namespace stepscope::exporter
