// What monitoring systems are told of runs: the values of summary.json under names of Prometheus's
// conventions (base units, _total for what only grows). What was not measured has no series.
//
// Thread safety: pure. Bounded: ranks of a run beyond kMaxRanks have no series of their own (and a
// series says so), user phases beyond kMaxUserPhases none, findings beyond kMaxFindings none.
#pragma once

#include <boost/json/value.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace stepscope::exporter {

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

std::vector<Family> metrics_of_run(const MeasuredRun& run, bool per_rank);
// Of a server: its runs', and its own.
std::vector<Family> metrics_of(const std::vector<MeasuredRun>& runs, bool per_rank);

}  // namespace stepscope::exporter
