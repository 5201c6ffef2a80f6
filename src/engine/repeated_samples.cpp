// REPEATED_SAMPLES: an IterableDataset in several workers, none of which asked which part is its own,
// so each goes through all of it: every sample comes once a worker (D11). It costs no step time, but
// an epoch is that many times as long, and the model sees everything so often.
#include <algorithm>
#include <utility>

#include "engine/claim.h"
#include "engine/words.h"

namespace stepscope::engine {
namespace {

bool repeats(const LoaderHistory& loader) {
  const auto loaded = std::count_if(loader.by_worker.begin(), loader.by_worker.end(),
                                    [](const LoaderWorker& w) { return w.batches > 0; });
  return loader.workers >= 2 && loader.has(kLoaderIterable) && !loader.has(kLoaderSplits) &&
         loaded >= 2 && loader.sum(LoaderPart::kAskedWhich) == 0;
}

}  // namespace

void repeated_samples(const Context& context, Findings& findings) {
  for (const LoaderHistory& loader : context.run.loaders) {
    if (!repeats(loader)) continue;
    Finding finding;
    finding.code = "REPEATED_SAMPLES";
    finding.severity = Severity::kWarning;
    finding.confidence = "possible";
    finding.phase = "input";
    finding.title = "each of " + std::to_string(loader.workers) + " workers goes through all of " +
                    loader.dataset + ": every sample comes " + std::to_string(loader.workers) +
                    " times";
    add_evidence(finding, "workers", loader.workers, "");
    add_evidence(finding, "first_rank", loader.rank, "");
    finding.advice = {
        {"Let the dataset give each worker its part: torch.utils.data.get_worker_info() in "
         "__iter__, with its id and num_workers; and each rank its own of that.",
         std::nullopt, "This finding is gone; hash the sample ids of an epoch: none comes twice.",
         "The dataset splits itself in another way, or draws samples at random on purpose."}};
    findings.push_back(std::move(finding));
    return;  // the other ranks' loaders are the same
  }
}

}  // namespace stepscope::engine
