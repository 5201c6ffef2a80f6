// WORKER_RESTART: what is waited for is workers that start anew at each epoch (D01). The remedy is
// wrong where the dataset keeps its epoch in itself: workers that live on have copies that would
// never hear of it (D02).
#include "engine/input_cause.h"
#include "engine/words.h"

namespace stepscope::engine {

std::optional<InputCause> worker_restart(const InputCase& input) {
  const LoaderHistory& l = *input.loader.history;
  const bool most = input.epoch_share >= 0.5 * (input.epoch_share + input.fetch_share);
  if (!most || l.workers == 0 || l.has(kLoaderPersistent) || l.starts < 2) return std::nullopt;
  const double start_ms = static_cast<double>(l.start_ns) / static_cast<double>(l.starts) / 1e6;
  InputCause cause{.name = "WORKER_RESTART",
                   .words = plural(l.workers, "worker starts", "workers start") + " anew " +
                            std::to_string(l.starts) + " times",
                   .saving = input.epoch_share};
  cause.evidence = {{"worker_starts", static_cast<double>(l.starts), ""},
                    {"worker_start_ms", start_ms, "ms"}};
  if (!l.has(kLoaderOwnEpoch)) {
    cause.advice.push_back(
        {"Keep the workers from one epoch to the next: DataLoader(persistent_workers=True).",
         input.epoch_share,
         "Run again: the part of input at epoch starts falls. Hash the sample ids of two epochs: "
         "they must differ.",
         "The dataset keeps its epoch in itself: the workers' copies would never hear of it and "
         "every epoch would be the same."});
  } else {
    cause.advice.push_back(
        {"Make epochs longer, or what a worker does at its start shorter (imports, opening "
         "files). Leave persistent_workers off: " +
             l.dataset +
             " keeps its epoch in itself, and workers that live on would repeat the first one.",
         input.epoch_share, "Run again: the part of input at epoch starts falls.",
         "The epoch moves into the sampler (DistributedSampler.set_epoch): then "
         "persistent_workers=True is right."});
  }
  if (l.has(kLoaderSpawned))
    cause.advice.push_back(
        {"Start workers by fork where nothing forbids it: "
         "DataLoader(multiprocessing_context=\"fork\").",
         std::nullopt, "Run again: the time of an epoch start falls.",
         "The process holds a device context or threads that must not be "
         "forked."});
  return cause;
}

}  // namespace stepscope::engine
