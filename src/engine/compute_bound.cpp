// COMPUTE_BOUND: the step is mostly forward, backward and optimizer, and no rule above fired: what
// is left to mend is the computing itself. Device time only: never from host time of an accelerator
// run.
#include <algorithm>
#include <array>
#include <utility>

#include "engine/claim.h"
#include "engine/words.h"

namespace stepscope::engine {
namespace {

bool something_fired(const Findings& findings) {
  constexpr std::array kAbove = {"INPUT_BOUND", "H2D_BOUND", "SYNC_BOUND", "OPTIMIZER_BOUND",
                                 "OVERHEAD"};
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) {
    return finding.severity != Severity::kInfo &&
           std::find(kAbove.begin(), kAbove.end(), finding.code) != kAbove.end();
  });
}

std::string_view largest_phase(const Shares& shares) {
  constexpr std::array kCompute = {Phase::kForward, Phase::kBackward, Phase::kOptimizer};
  return phase_name(*std::max_element(kCompute.begin(), kCompute.end(), [&](Phase a, Phase b) {
    return shares.share(phase_column({a})) < shares.share(phase_column({b}));
  }));
}

}  // namespace

void compute_bound(const Context& context, Findings& findings) {
  if (!context.enough() || context.host_time_only || something_fired(findings)) return;
  const Shares& shares = context.shares;
  const double wanted = context.settings.compute_bound;
  const auto judged =
      judge_column(context, phase_column({Phase::kForward, Phase::kBackward, Phase::kOptimizer}),
                   wanted, wanted);
  if (!judged) return;
  Claim claim = judged->claim;
  claim.severity = Severity::kInfo;
  Finding finding = share_finding(context, "COMPUTE_BOUND", "compute", judged->share, claim);
  finding.phase = std::string(largest_phase(shares));
  finding.title =
      percent(judged->share.estimate) + " of each step is forward, backward and optimizer";
  for (const Phase phase : {Phase::kForward, Phase::kBackward, Phase::kOptimizer})
    add_evidence(finding, std::string(phase_name(phase)) + "_share",
                 shares.share(phase_column({phase})), "share");
  finding.advice = {
      {"Compile the model: torch.compile(model).", std::nullopt,
       "Steps after the warm-up are shorter; the losses stay within rounding.",
       "Shapes change from step to step, or it is compiled already."},
      {"Compute in bfloat16: torch.autocast(device_type=..., dtype=torch.bfloat16).", std::nullopt,
       "samples/s rise; the loss curve must not change.", "The hardware has no fast bfloat16."},
      {"Try a larger batch until samples/s stop rising.", std::nullopt,
       "Compare samples/s, not steps/s.", "Memory is full, or training does not tolerate it."}};
  findings.push_back(std::move(finding));
}

}  // namespace stepscope::engine
