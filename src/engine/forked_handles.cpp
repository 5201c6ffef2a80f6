// FORKED_HANDLES: the dataset held open file handles when its workers were forked. They share one
// file position with the training process, and libraries such as HDF5 their caches: samples may be
// wrong without any error (D09).
#include <utility>

#include "engine/claim.h"

namespace stepscope::engine {

void forked_handles(const Context& context, Findings& findings) {
  for (const LoaderHistory& loader : context.run.loaders) {
    if (!loader.has(kLoaderHandles) || loader.has(kLoaderSpawned) || loader.workers == 0) continue;
    Finding finding;
    finding.code = "FORKED_HANDLES";
    finding.severity = Severity::kWarning;
    finding.confidence = "possible";
    finding.phase = "input";
    finding.title =
        loader.dataset + " opened files before its workers were forked: they share them";
    add_evidence(finding, "workers", loader.workers, "");
    add_evidence(finding, "first_rank", loader.rank, "");
    finding.advice = {
        {"Open files in the worker: at the first __getitem__, or in worker_init_fn, not in "
         "__init__.",
         std::nullopt, "This finding is gone.",
         "The handles are not read in workers, or only at given offsets (os.pread)."}};
    findings.push_back(std::move(finding));
    return;  // the other ranks' loaders are the same
  }
}

}  // namespace stepscope::engine
