// SYNC_BOUND: exposed transfer, the time in which every rank waits and none computes.
//
// One rank's sync is transfer and waiting for others in one; only the rank that waited least tells
// the transfer. So:
//   transfer(k) = least wait of a rank at sync point k; needs every member
//   share = sum of transfer / sum of the step, over the joined steady steps
//   predicted_saving = min(share, backward share): overlapped, it hides behind backward
// With one rank there is nothing to wait for. What is not judged here, insufficient_data.cpp says.
#include <algorithm>
#include <utility>

#include "engine/claim.h"
#include "engine/sync_transfer.h"
#include "engine/words.h"

namespace stepscope::engine {
namespace {

// Backwards an optimizer step, of the first rank that accumulates; 1: none does.
double micro_steps(const Context& context) {
  for (const Shares::Rank& rank : context.shares.ranks())
    if (rank.history->steady_backwards > rank.history->steady_optimizer_steps &&
        rank.history->steady_optimizer_steps > 0)
      return static_cast<double>(rank.history->steady_backwards) /
             static_cast<double>(rank.history->steady_optimizer_steps);
  return 1;
}

// no_sync would skip all but one wait of an optimizer step. Known to be of no use where the waits were counted and are
// fewer already.
void advise_no_sync(const Context& context, Finding& finding, double share) {
  const double micro = micro_steps(context);
  if (micro <= 1) return;
  const Leftover& counted = context.run.comparison.leftover;
  const double syncs = counted.steps > 0 ? counted.syncs / counted.steps : 0;
  add_evidence(finding, "micro_steps", micro, "");
  if (syncs > 0) {
    add_evidence(finding, "syncs_per_step", syncs, "");
    if (syncs < micro) return;
    finding.title += ", " + number(syncs) + " times a step: once a micro-step";
  }
  const double gain = share * (1 - 1 / micro);
  add_evidence(finding, "no_sync_gain", gain, "share");
  finding.advice.push_back(
      {"Skip the transfer of all but the last micro-step: with model.no_sync(): around the "
       "others.",
       gain, "sync falls with the number of micro-steps; the losses stay within rounding.",
       "no_sync is in use and works, or each backward has its own optimizer step."});
}

}  // namespace

void sync_bound(const Context& context, Findings& findings) {
  const auto sync = sync_transfer(context);
  if (!sync || sync->transfer_share < context.settings.sync_warning) return;
  const Interval share = bootstrap_ratio({&sync->transfer, 1});
  const auto claim = judge(share, context.settings.sync_warning, context.settings.sync_critical);
  if (!claim) return;

  Finding finding = share_finding(context, "SYNC_BOUND", "sync", share, *claim);
  finding.title =
      percent(share.estimate) + " of each step transfers gradients with nothing computed meanwhile";
  finding.first_step = sync->first_step;
  finding.last_step = sync->last_step;
  finding.predicted_saving =
      std::min(share.estimate, context.shares.share(phase_column({Phase::kBackward})));
  add_evidence(finding, "waiting_share", sync->sync_share - sync->transfer_share, "share");
  add_evidence(finding, "joined_steps", static_cast<double>(sync->steps), "steps");
  advise_no_sync(context, finding, share.estimate);
  finding.advice.push_back(
      {"Overlap the transfer with backward: smaller buckets "
       "(DistributedDataParallel(bucket_cap_mb=...)), "
       "gradient_as_bucket_view=True.",
       finding.predicted_saving, "sync falls; try two or three sizes.",
       "One bucket holds most of the parameters."});
  finding.advice.push_back(
      {"Send fewer bytes: the bf16_compress_hook of DDP, or accumulate the gradients of several "
       "batches.",
       share.estimate / 2, "sync falls; the loss curve must not change.",
       "Latency rather than bytes is what costs."});
  finding.advice.push_back(
      {"Check the path between the ranks: the interface in use (NCCL_SOCKET_IFNAME, "
       "GLOO_SOCKET_IFNAME), fewer nodes.",
       std::nullopt, "Bytes/s of an all-reduce alone against what the network does.",
       "All ranks are on one node."});
  findings.push_back(std::move(finding));
}

}  // namespace stepscope::engine
