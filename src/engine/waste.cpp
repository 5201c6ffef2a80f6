#include "engine/waste.h"

#include <algorithm>

#include "engine/claim.h"

namespace stepscope::engine {

double slowdown(const Comparison& c) {
  const double without = c.time_ns - c.cost_ns;
  return without > 0 ? c.time_ns / without : 1;
}

double rank_seconds(const Comparison& c) {
  return (1 - 1 / slowdown(c)) * c.ranks * c.time_ns / 1e9;
}

double judged_step_ms(const Comparison& c) {
  return c.time_ns / static_cast<double>(std::max<int64_t>(1, c.steps)) / 1e6;
}

void add_waste(Finding& finding, const Comparison& c) {
  add_evidence(finding, "slowdown", slowdown(c), "");
  add_evidence(finding, "waste", 1 - 1 / slowdown(c), "share");
  add_evidence(finding, "rank_seconds", rank_seconds(c), "s");
  add_evidence(finding, "ranks", c.ranks, "ranks");
  add_evidence(finding, "judged_steps", static_cast<double>(c.steps), "steps");
  finding.not_measured.push_back("device times: sync points are host times");
}

}  // namespace stepscope::engine
