#include "exporter/metrics.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <map>
#include <optional>

#include "base/version.h"
#include "report/json_text.h"

namespace stepscope::exporter {
namespace json = boost::json;
namespace {

using report::member;
using Labels = std::vector<std::pair<std::string, std::string>>;

std::optional<double> number(const json::value& value) {
  if (!value.is_number()) return std::nullopt;
  json::error_code failed;
  const double out = value.to_number<double>(failed);
  return failed || !std::isfinite(out) ? std::nullopt : std::optional(out);
}

std::string word(const json::value& value) {
  if (value.is_string()) return std::string(value.get_string());
  if (value.is_int64()) return std::to_string(value.get_int64());
  return "";
}

// Letters that a metric's name may have.
std::string name_of(std::string_view text) {
  std::string out;
  for (const char c : text)
    out += (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ? c : '_';
  return out;
}

// Families in the order in which they first came.
class Families {
 public:
  void gauge(const std::string& name, const char* unit, const std::string& help, Labels labels,
             std::optional<double> value) {
    add(name, unit, help, false, std::move(labels), value);
  }
  void counter(const std::string& name, const char* unit, const std::string& help, Labels labels,
               std::optional<double> value) {
    add(name, unit, help, true, std::move(labels), value);
  }
  std::vector<Family> take() { return std::move(families_); }

 private:
  void add(const std::string& name, const char* unit, const std::string& help, bool counter,
           Labels labels, std::optional<double> value) {
    if (!value) return;
    const auto [entry, fresh] = by_name_.try_emplace(name, families_.size());
    if (fresh) families_.push_back({name, help, unit, counter, {}});
    families_[entry->second].samples.push_back({std::move(labels), *value});
  }

  std::vector<Family> families_;
  std::map<std::string, size_t> by_name_;
};

std::optional<double> seconds(const json::value& ms) {
  const auto value = number(ms);
  return value ? std::optional(*value / 1e3) : std::nullopt;
}

Labels with(Labels labels, const std::string& name, const std::string& value) {
  labels.emplace_back(name, value);
  return labels;
}

void add_phases(Families& out, const json::value& phases, const Labels& run) {
  const json::object* all = phases.if_object();
  if (all == nullptr) return;
  size_t users = 0;
  for (const auto& entry : *all) {
    if (member(entry.value(), "user") == true && ++users > kMaxUserPhases) continue;
    const Labels labels = with(run, "phase", std::string(entry.key()));
    out.gauge("stepscope_phase_mean_seconds", "s", "Time of a phase in the mean steady step",
              labels, seconds(member(entry.value(), "mean_ms")));
    out.gauge("stepscope_phase_ratio", "1", "Share of a phase in the mean steady step", labels,
              number(member(entry.value(), "share")));
  }
}

void add_findings(Families& out, const json::value& summary, const Labels& run) {
  const json::array* findings = member(summary, "findings").if_array();
  if (findings == nullptr) return;
  size_t count = 0;
  std::map<std::pair<std::string, std::string>, double> seen;  // code, severity
  for (const json::value& finding : *findings)
    if (member(finding, "ended") != true && ++count <= kMaxFindings)
      ++seen[{word(member(finding, "code")), word(member(finding, "severity"))}];
  for (const auto& [what, number_of_them] : seen)
    out.gauge("stepscope_findings", "1", "Findings that hold, by code and severity",
              with(with(run, "code", what.first), "severity", what.second), number_of_them);
  const json::value& verdict = member(summary, "verdict");
  if (!word(member(verdict, "code")).empty())
    out.gauge("stepscope_verdict_info", "1", "The first finding of the run",
              with(with(run, "code", word(member(verdict, "code"))), "severity",
                   word(member(verdict, "severity"))),
              1);
}

struct Unit {
  const char *of_summary, *suffix, *of_otlp;
};
constexpr Unit kUnits[] = {{"cores", "_cores", "{core}"},
                           {"bytes", "_bytes", "By"},
                           {"bytes/s", "_bytes_per_second", "By/s"},
                           {"share", "_ratio", "1"}};

void add_resources(Families& out, const json::value& summary, const Labels& run) {
  const json::object* all = member(summary, "resources").if_object();
  if (all == nullptr) return;
  for (const auto& entry : *all) {
    const std::string unit = word(member(entry.value(), "unit"));
    const auto* known = std::find_if(std::begin(kUnits), std::end(kUnits),
                                     [&](const Unit& one) { return unit == one.of_summary; });
    if (known == std::end(kUnits)) continue;
    for (const char* what : {"average", "peak", "limit"})
      out.gauge("stepscope_" + name_of(entry.key()) + "_" + what + known->suffix, known->of_otlp,
                "The run's " + name_of(entry.key()) + ": " + what, run,
                number(member(entry.value(), what)));
  }
}

void add_occurrences(Families& out, const json::value& summary, const Labels& run) {
  const json::object* all = member(summary, "occurrences").if_object();
  if (all == nullptr) return;
  for (const auto& entry : *all) {
    const Labels labels = with(run, "kind", std::string(entry.key()));
    out.counter("stepscope_occurrences_total", "1",
                "Checkpoints, validations, ... of the rank that had most", labels,
                number(member(entry.value(), "count")));
    out.counter("stepscope_occurrences_seconds_total", "s", "What they took", labels,
                seconds(member(entry.value(), "total_ms")));
  }
}

void add_ranks(Families& out, const json::value& summary, const Labels& run) {
  const json::array* ranks = member(summary, "ranks").if_array();
  if (ranks == nullptr) return;
  const bool too_many = ranks->size() > kMaxRanks;
  out.gauge("stepscope_rank_series_omitted", "1",
            "1: the run has too many ranks for series of each", run, too_many ? 1 : 0);
  if (too_many) return;
  for (const json::value& rank : *ranks) {
    const Labels labels =
        with(with(run, "rank", word(member(rank, "rank"))), "node", word(member(rank, "node")));
    out.counter("stepscope_rank_steps_total", "1", "Steps that a rank finished", labels,
                number(member(rank, "steps")));
    out.gauge("stepscope_rank_step_mean_seconds", "s", "Mean steady step of a rank", labels,
              seconds(member(rank, "mean_ms")));
    out.gauge("stepscope_rank_own_mean_seconds", "s",
              "Mean steady step of a rank without its waiting for others", labels,
              seconds(member(rank, "own_ms")));
  }
}

void add_run(Families& out, const MeasuredRun& measured, bool per_rank) {
  const json::value& summary = *measured.summary;
  const json::value &facts = member(summary, "run"), &steps = member(summary, "steps");
  const json::value& throughput = member(summary, "throughput");
  const json::value& own = member(summary, "stepscope");
  const Labels run = {{"run", measured.key}};
  out.gauge(
      "stepscope_run_info", "1", "A run that is served",
      with(with(with(run, "name", word(member(facts, "name"))), "id", word(member(facts, "id"))),
           "torch", word(member(member(facts, "versions"), "torch"))),
      1);
  out.gauge("stepscope_run_live", "1", "1 while the run goes on", run, measured.live ? 1 : 0);
  out.gauge("stepscope_run_duration_seconds", "s", "Since the run's start, or all of it", run,
            number(member(facts, "duration_s")));
  out.gauge("stepscope_ranks", "1", "Ranks that were seen", run, number(member(facts, "ranks")));
  out.counter("stepscope_steps_total", "1", "Steps that the furthest rank finished", run,
              number(member(steps, "count")));
  out.counter("stepscope_failed_steps_total", "1", "Steps that failed", run,
              number(member(steps, "failed")));
  out.gauge("stepscope_step_mean_seconds", "s", "Mean steady step", run,
            seconds(member(steps, "mean_ms")));
  out.gauge("stepscope_step_median_seconds", "s", "Median steady step", run,
            seconds(member(steps, "median_ms")));
  out.gauge("stepscope_step_p95_seconds", "s", "95th percentile of the steady steps", run,
            seconds(member(steps, "p95_ms")));
  out.gauge("stepscope_samples_per_second", "1/s", "Samples a second over all ranks", run,
            number(member(throughput, "samples_per_s")));
  out.gauge("stepscope_steps_per_second", "1/s", "Steps a second", run,
            number(member(throughput, "steps_per_s")));
  add_phases(out, member(summary, "phases"), run);
  add_findings(out, summary, run);
  add_resources(out, summary, run);
  add_occurrences(out, summary, run);
  out.counter("stepscope_records_total", "1", "Events that Stepscope recorded", run,
              number(member(own, "records_written")));
  out.counter("stepscope_records_dropped_total", "1", "Events that it had no room for", run,
              number(member(own, "records_dropped")));
  const auto cost_us = number(member(own, "cost_us_per_step"));
  out.gauge("stepscope_cost_per_step_seconds", "s", "What Stepscope itself takes of a step", run,
            cost_us ? std::optional(*cost_us / 1e6) : std::nullopt);
  if (per_rank) add_ranks(out, summary, run);
}

}  // namespace

std::vector<Family> metrics_of_run(const MeasuredRun& run, bool per_rank) {
  Families out;
  if (run.summary && run.summary->is_object()) add_run(out, run, per_rank);
  return out.take();
}

std::vector<Family> metrics_of(const std::vector<MeasuredRun>& runs, bool per_rank) {
  Families out;
  double live = 0;
  for (const MeasuredRun& run : runs) live += run.live ? 1 : 0;
  out.gauge("stepscope_build_info", "1", "The version that answers", {{"version", kVersion}}, 1);
  out.gauge("stepscope_up", "1", "1: it answers", {}, 1);
  const double all = static_cast<double>(runs.size());
  out.gauge("stepscope_runs", "1", "Runs that are served", {{"state", "live"}}, live);
  out.gauge("stepscope_runs", "1", "Runs that are served", {{"state", "ended"}}, all - live);
  for (const MeasuredRun& run : runs)
    if (run.summary && run.summary->is_object()) add_run(out, run, per_rank);
  return out.take();
}

}  // namespace stepscope::exporter
