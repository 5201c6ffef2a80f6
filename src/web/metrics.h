// What monitoring systems are told of runs: the values of summary.json under names of Prometheus's
// conventions (base units, _total for what only grows). What was not measured has no series.
//
// Thread safety: pure. Bounded: ranks of a run beyond kMaxRanks have no series of their own (and a
// series says so), user phases beyond kMaxUserPhases none, findings beyond kMaxFindings none.
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepscope::web {

struct Sample {
  std::vector<std::pair<std::string, std::string>> labels;
  double value = 0;
};

struct Family {
  std::string name, help, unit;  // unit as OTLP has it: "s", "By", "1", ...
  bool counter = false;          // else a gauge
  std::vector<Sample> samples;
};

struct MeasuredRun {
  std::string key;
  bool live = false;
  std::shared_ptr<const boost::json::value> summary;  // summary.json; null: nothing known
};

inline constexpr size_t kMaxRanks = 1024, kMaxUserPhases = 32, kMaxFindings = 50;

std::vector<Family> metrics_of(const std::vector<MeasuredRun>& runs, bool per_rank);

inline constexpr const char* kPrometheusType = "text/plain; version=0.0.4; charset=utf-8";
std::string prometheus_text(const std::vector<Family>& families);

// A remote-write 1.0 request: protobuf in a Snappy block.
std::string remote_write(const std::vector<Family>& families, int64_t time_ms);

// An ExportMetricsServiceRequest of OTLP/HTTP. Counters began at start_ns.
std::string otlp(const std::vector<Family>& families, int64_t start_ns, int64_t time_ns);

}  // namespace stepscope::web
