// H2D_BOUND: copies to the device are waited for. Device time only: never from host time of an
// accelerator run.
//
//   share = h2d / step
//   predicted_saving = min(h2d, forward + backward) / step: overlapped, it hides behind compute
#include <algorithm>
#include <utility>

#include "engine/claim.h"
#include "engine/words.h"

namespace stepscope::engine {

void h2d_bound(const Context& context, Findings& findings) {
  if (!context.enough() || context.host_time_only) return;
  const auto judged = judge_column(context, phase_column({Phase::kH2d}),
                                   context.settings.h2d_warning, context.settings.h2d_critical);
  if (!judged) return;
  Finding finding = share_finding(context, "H2D_BOUND", "h2d", judged->share, judged->claim);
  finding.title = percent(judged->share.estimate) + " of each step copies data to the device";
  const double compute = context.shares.share(phase_column({Phase::kForward, Phase::kBackward}));
  finding.predicted_saving = std::min(judged->share.estimate, compute);
  finding.advice = {{"Copy from pinned memory without waiting: DataLoader(pin_memory=True) and "
                     ".to(device, non_blocking=True).",
                     finding.predicted_saving, "Run again both ways: h2d falls and samples/s rise.",
                     "The result of the copy is read on the host at once, or the pinning thread "
                     "competes for the GIL."},
                    {"Copy fewer, larger tensors, in the type they are needed in (uint8 images, "
                     "converted on the device).",
                     std::nullopt, "h2d falls with the bytes of a batch.",
                     "A batch is one tensor of the right type already."}};
  findings.push_back(std::move(finding));
}

}  // namespace stepscope::engine
