// Two runs against each other, as every view shows it: `stepscope compare`, GET /v1/compare.
//
// Thread safety: plain values, pure functions. What is real and what is noise the engine decides
// (engine/compare_runs.h); here are the words.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/compare_runs.h"
#include "report/report.h"

namespace stepscope::report {

inline constexpr int kDifferenceSchema = 1;

struct DifferenceOptions {
  std::optional<double> max_slowdown;  // share of a step of A
  bool anyway = false;                 // also where a step is not the same work in both
};

struct Difference {
  std::string code;   // SAME, SLOWER, FASTER
  std::string title;  // the sentence after it
  Summary a, b;
  engine::RunChange change;
  std::optional<double>
      samples_per_s_share;  // of A's, by which B's differs; a rate: above 0 is better
  std::string from;         // which ranks and phases it comes from; empty: nothing is real
  std::vector<engine::Incomparable> remarks;
  std::optional<double> max_slowdown;
  bool exceeded = false;  // slower by more than max_slowdown, and that is real
};

// An Error where they cannot be compared: too few steps, or a step is not the same work in both.
Result<Difference> difference(const RunHistory& a, const RunHistory& b,
                              const DifferenceOptions& options = {});

std::string to_json(const Difference& difference,
                    bool pretty = true);  // docs/reference/compare.schema.json
std::string card(const Difference& difference, const CardStyle& style);

}  // namespace stepscope::report
