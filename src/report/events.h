// What happened besides plain steps, as marks for the charts: checkpoints, validations, epoch starts, compilations,
// profiler windows, pauses of the garbage collector, and what was found.
//
// An occurrence that all ranks have at one step is one event, of the rank in which it took longest. Garbage collection
// is an event where it takes at least a twentieth of a step.
// Thread safety: pure. Bounded: kMost, findings before all else, then the longest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/finding.h"
#include "model/history.h"
#include "report/json_text.h"
#include "report/pieces.h"

namespace stepscope::report {

struct Event {
  std::string kind;  // checkpoint, validation, epoch_start, compile, profiler, gc, finding
  std::optional<int32_t> rank;
  int64_t step = 0;
  std::optional<int64_t> last_step;
  std::optional<double> time_s;  // of its begin, since the rank's first step began
  std::optional<double> duration_ms;
  std::string text;                  // besides kind and duration
  const Finding* finding = nullptr;  // of that kind
};

inline constexpr size_t kMostEvents = 2000;
inline constexpr double kGcShare = 0.05;

// By step. Points into the findings.
std::vector<Event> events(const RunHistory& run, const std::vector<Finding>& findings,
                          const StepRange& range);
json::object to_json(const std::vector<Event>& events);

}  // namespace stepscope::report
