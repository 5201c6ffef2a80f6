// OPTIMIZER_BOUND: the optimizer takes more of the step than its arithmetic is worth.
//
//   share = optimizer / step
//   predicted_saving = share / 2: a fused optimizer reads and writes each tensor once instead of
//   several times, and half of the time is what that is assumed to save
#include <utility>

#include "engine/claim.h"
#include "engine/words.h"

namespace stepscope::engine {
namespace {

constexpr double kFusedSaves = 0.5;

}  // namespace

void optimizer_bound(const Context& context, Findings& findings) {
  if (!context.enough() || context.host_time_only) return;
  const auto judged =
      judge_column(context, phase_column({Phase::kOptimizer}), context.settings.optimizer_warning,
                   context.settings.optimizer_critical);
  if (!judged) return;
  const double share = judged->share.estimate;
  Finding finding =
      share_finding(context, "OPTIMIZER_BOUND", "optimizer", judged->share, judged->claim);
  finding.title = percent(share) + " of each step is the optimizer";
  finding.predicted_saving = kFusedSaves * share;
  double calls = 0, steps = 0;
  for (const Shares::Rank& rank : context.shares.ranks()) {
    calls += static_cast<double>(rank.history->steady_optimizer_steps);
    steps += static_cast<double>(rank.steps);
  }
  add_evidence(finding, "optimizer_steps_per_step", calls / steps, "");
  finding.advice = {
      {"Use the fused or the foreach form of the optimizer: fused=True, else foreach=True.",
       kFusedSaves * share, "optimizer_ms falls; the losses stay within rounding.",
       "It is in use already, or the optimizer has no such form for these parameters."},
      {"Step less often: accumulate the gradients of several batches for one optimizer step.",
       0.5 * share, "optimizer_ms per batch falls; the loss per sample must not get worse.",
       "The batch is as large as training tolerates."},
      {"Have fewer, larger parameter tensors, and leave frozen ones out of the optimizer.",
       std::nullopt, "optimizer_ms falls with the number of tensors.",
       "There are few tensors already."}};
  findings.push_back(std::move(finding));
}

}  // namespace stepscope::engine
