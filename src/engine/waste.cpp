#include "engine/waste.h"

#include "engine/claim.h"

namespace stepscope::engine {

double slowdown(const Comparison& c) {
  const double without = c.time_ns - c.cost_ns;
  return without > 0 ? c.time_ns / without : 1;
}

double rank_seconds(const Comparison& c) {
  return (1 - 1 / slowdown(c)) * c.ranks * c.time_ns / 1e9;
}

void add_waste(Finding& finding, const Comparison& c, bool host_time_only) {
  add_evidence(finding, "slowdown", slowdown(c), "");
  add_evidence(finding, "waste", 1 - 1 / slowdown(c), "share");
  add_evidence(finding, "rank_seconds", rank_seconds(c), "s");
  add_evidence(finding, "ranks", c.ranks, "ranks");
  add_evidence(finding, "judged_steps", static_cast<double>(c.steps), "steps");
  if (host_time_only) finding.not_measured.push_back("device time: sync points are host times");
}

}  // namespace stepscope::engine
