// OTLP's JSON (protobuf's JSON mapping: 64-bit integers are texts, enumerations numbers), a request a line, as the
// collector's file exporter writes and its `otlpjsonfile` receiver reads it.
//
//   line 1      every metric of the run in docs/reference/metrics.md, at the run's end
//   line 2...   up to kStepsALine steps of one rank: their lengths and their phases', a point each at the step's end
#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/version.h"
#include "exporter/clocks.h"
#include "exporter/exporter.h"
#include "exporter/metrics.h"
#include "exporter/step_phases.h"
#include "report/json_text.h"
#include "report/report.h"

namespace stepscope::exporter {
namespace {

namespace json = boost::json;
constexpr size_t kStepsALine = 500;
constexpr int kCumulative = 2;  // AggregationTemporality

std::string quoted(std::string_view text) { return json::serialize(report::text(text)); }

std::string attribute(std::string_view key, std::string_view value) {
  return "{\"key\":" + quoted(key) + ",\"value\":{\"stringValue\":" + quoted(value) + "}}";
}

std::string attributes(const std::vector<std::pair<std::string, std::string>>& all) {
  std::string out;
  for (const auto& [key, value] : all) out += (out.empty() ? "" : ",") + attribute(key, value);
  return out;
}

std::string request(const std::string& resource, const std::string& metrics) {
  return "{\"resourceMetrics\":[{\"resource\":{\"attributes\":[" + resource +
         "]},\"scopeMetrics\":[{\"scope\":{\"name\":\"stepscope\",\"version\":" + quoted(kVersion) +
         "},\"metrics\":[" + metrics + "]}]}]}\n";
}

std::string metric(std::string_view name, std::string_view help, std::string_view unit,
                   const std::string& data) {
  return "{\"name\":" + quoted(name) + ",\"description\":" + quoted(help) +
         ",\"unit\":" + quoted(unit) + "," + data + "}";
}

std::string metric(const Family& family, int64_t start_ns, int64_t time_ns) {
  std::string points;
  for (const Sample& sample : family.samples) {
    points += points.empty() ? "{" : ",{";
    if (family.counter) points += fmt::format("\"startTimeUnixNano\":\"{}\",", start_ns);
    fmt::format_to(std::back_inserter(points), "\"timeUnixNano\":\"{}\",\"asDouble\":{}", time_ns,
                   sample.value);
    points += ",\"attributes\":[" + attributes(sample.labels) + "]}";
  }
  const std::string data = family.counter
                               ? fmt::format(
                                     "\"sum\":{{\"aggregationTemporality\":{},\"isMonotonic\":true,"
                                     "\"dataPoints\":[{}]}}",
                                     kCumulative, points)
                               : "\"gauge\":{\"dataPoints\":[" + points + "]}";
  return metric(family.name, family.help, family.unit, data);
}

std::string gauge(const char* name, const char* help, const std::string& points) {
  return metric(name, help, "s", "\"gauge\":{\"dataPoints\":[" + points + "]}");
}

// A line of steps.
class Steps {
 public:
  Steps(const RunHistory& run, const RankHistory& rank, uint32_t phases)
      : phases_(phases),
        step_(attributes(labels(run, rank))),
        resource_(attributes({{"service.name", "stepscope"}, {"host.name", rank.node}})) {
    for (size_t p = 0; p < kPhaseCount; ++p) {
      auto all = labels(run, rank);
      all.emplace_back("phase", kPhaseNames[p]);
      phase_[p] = attributes(all);
    }
  }

  void add(const StepSample& step, int64_t time_ns) {
    point(lengths_, step_, step.total_ns(), time_ns);
    const StepPhases phases = phases_of(step);
    for (size_t p = 0; p < kPhaseCount; ++p)
      if ((phases_ >> p & 1U) != 0 || phases.ns[p] > 0)
        point(parts_, phase_[p], phases.ns[p], time_ns);
    for (const auto& [name, ns] : phases.user_ns)
      point(parts_, step_ + "," + attribute("phase", name), ns, time_ns);
    ++count_;
  }

  bool full() const { return count_ >= kStepsALine; }

  void flush(Output& out) {
    if (count_ == 0) return;
    out.write(request(resource_,
                      gauge("stepscope_step_seconds", "One step of a rank", lengths_) + "," +
                          gauge("stepscope_step_phase_seconds", "A phase of that step", parts_)));
    lengths_.clear();
    parts_.clear();
    count_ = 0;
  }

 private:
  static std::vector<std::pair<std::string, std::string>> labels(const RunHistory& run,
                                                                 const RankHistory& rank) {
    return {{"run", run.name}, {"rank", std::to_string(rank.rank)}, {"node", rank.node}};
  }
  static void point(std::string& to, const std::string& labels, int64_t ns, int64_t time_ns) {
    fmt::format_to(std::back_inserter(to),
                   "{}{{\"timeUnixNano\":\"{}\",\"asDouble\":{},\"attributes\":[{}]}}",
                   to.empty() ? "" : ",", time_ns, static_cast<double>(ns) / 1e9, labels);
  }

  const uint32_t phases_;  // bits: those that some step of the run spent time in
  const std::string step_, resource_;
  std::array<std::string, kPhaseCount> phase_;
  std::string lengths_, parts_;
  size_t count_ = 0;
};

}  // namespace

void write_otlp(const RunHistory& run, const std::vector<Finding>& findings, Output& out) {
  const int64_t end_ns = run.started_wall_ns + run.duration_ns;
  json::error_code failed;  // of our own text: never
  const auto summary = std::make_shared<json::value>(json::parse(
      report::to_json(report::summarize(run, findings), report::JsonForm::kCompact), failed));
  std::string metrics;
  for (const Family& family : metrics_of_run({run.name, run.live, summary}, true))
    metrics += (metrics.empty() ? "" : ",") + metric(family, run.started_wall_ns, end_ns);
  out.write(request(attribute("service.name", "stepscope"), metrics));

  // The clock of the steps knows no date: the newest step is put at the run's end.
  const Clocks clocks(run);
  int64_t newest_ns = 0;
  uint32_t phases = 0;
  for (size_t r = 0; r < run.ranks.size(); ++r) {
    newest_ns = std::max(newest_ns, clocks.since_start_ns(r, run.ranks[r].last_end_ns));
    phases |= run.ranks[r].phases_seen;
  }
  for (size_t r = 0; r < run.ranks.size() && !out.failed(); ++r) {
    Steps steps(run, run.ranks[r], phases);
    for (const StepSample& step : run.ranks[r].raw) {
      steps.add(step, end_ns - newest_ns + clocks.since_start_ns(r, step.end_ns));
      if (steps.full()) steps.flush(out);
    }
    steps.flush(out);
  }
}

}  // namespace stepscope::exporter
