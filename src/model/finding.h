// A finding: what the engine says. Fields as in diagnosis.md section 7; a plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stepscope {

enum class Severity : uint8_t { kInfo, kWarning, kCritical };
enum class Scope : uint8_t { kJob, kNode, kRank, kDevice, kWorker };

struct Evidence {
  std::string name;  // snake_case
  double value = 0;
  std::string unit;  // "ms", "share", "bytes", "steps", "bytes/step", "" ...
};

struct Advice {
  std::string text;            // one imperative sentence
  std::optional<double> gain;  // predicted share of time saved, 0 to 1
  std::string check;           // how to see whether it helped
  std::string not_if;          // when it will not help
};

struct Finding {
  std::string code;  // INPUT_BOUND, ...
  Severity severity = Severity::kInfo;
  std::string confidence = "certain";  // or "possible": the interval does not clear the threshold
  Scope scope = Scope::kJob;
  std::optional<int32_t> rank;
  std::optional<std::string> node, device, worker;
  std::optional<std::string> phase;    // one of the twelve names or a user's
  std::optional<std::string> pattern;  // persistent, rotating, groups, spikes, jitter, ramp, change
  std::optional<std::string> cause;
  std::optional<int64_t> first_step, last_step;
  std::optional<double> share;
  std::optional<double> cost_ms_per_step;
  std::optional<double> predicted_saving;
  std::string title;  // the sentence after the code on the first line of every view
  std::vector<Evidence> evidence;
  std::vector<std::string> not_measured;
  std::vector<Advice> advice;
  bool ended = false;
};

}  // namespace stepscope
