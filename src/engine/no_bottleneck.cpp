// NO_BOTTLENECK: enough data, every needed signal measured, and nothing fired. A good answer, and
// it is given.
#include <algorithm>
#include <array>
#include <utility>

#include "engine/claim.h"

namespace stepscope::engine {
namespace {

bool rules_it_out(const Finding& finding) {
  return finding.severity != Severity::kInfo || finding.code == "COMPUTE_BOUND" ||
         finding.code == "INSUFFICIENT_DATA";
}

}  // namespace

void no_bottleneck(const Context& context, Findings& findings) {
  if (!context.enough() || std::any_of(findings.begin(), findings.end(), rules_it_out)) return;
  const Shares& shares = context.shares;
  Finding finding;
  finding.code = "NO_BOTTLENECK";
  finding.title = "nothing to gain here: no part of the step is over its threshold";
  finding.first_step = shares.first_step();
  finding.last_step = shares.last_step();
  constexpr std::array kShown = {Phase::kInput, Phase::kForward, Phase::kBackward,
                                 Phase::kOptimizer, Phase::kOther};
  for (const Phase phase : kShown)
    add_evidence(finding, std::string(phase_name(phase)) + "_share",
                 shares.share(phase_column({phase})), "share");
  add_evidence(finding, "steady_steps", static_cast<double>(shares.steady_steps()), "steps");
  findings.push_back(std::move(finding));
}

}  // namespace stepscope::engine
