// GIL_BOUND: threads that load take turns at the interpreter lock. Two ways: threads of a dataset's
// own that are in transforms at the same time while the process keeps no more than one core busy;
// and the thread that pins memory, when batches lie ready and the training process still waits (D05).
#include <algorithm>

#include "engine/input_cause.h"
#include "engine/words.h"

namespace stepscope::engine {
namespace {

// Of the time to load is spent on threads of the dataset's own. One that holds the lock to the end of
// what it does never overlaps another, so that a sum over threads of more than that is not needed.
constexpr double kOnThreads = 0.5;
constexpr double kMostWaiting = 0.3;                   // for something else than the lock
constexpr double kLeastCores = 0.6, kMostCores = 1.3;  // what one lock allows
constexpr double kPinShare = 0.5;                      // of a batch's time in the training process

std::optional<InputCause> own_threads(const InputCase& input) {
  const LoaderView& v = input.loader;
  // In the training process what is known is what all of it keeps busy.
  const auto cores = v.cpu_share ? v.cpu_share : input.train_cores;
  if (v.threads < kOnThreads || !cores || *cores > kMostCores) return std::nullopt;
  if (v.cpu_share && (*cores < kLeastCores || v.off_cpu_share.value_or(0) > kMostWaiting))
    return std::nullopt;
  if (!v.cpu_share && *cores < kLeastCores * input.fetch_share) return std::nullopt;
  InputCause cause{.name = "GIL_BOUND",
                   .words = "threads that load wait for each other: the interpreter lock",
                   .saving = input.saving(1 / std::max(2.0, input.cores - 1))};
  cause.evidence = {{"loading_threads", v.threads, ""}, {"loading_cores", *cores, "cores"}};
  cause.advice.push_back(
      {"Load in processes instead of threads: a worker each (DataLoader num_workers), and no pool "
       "of threads in the dataset.",
       cause.saving, "Run again: more than one core is busy with loading.",
       "The transforms let go of the lock (NumPy, Pillow, OpenCV on large arrays): then threads "
       "are as good."});
  return cause;
}

std::optional<InputCause> pin_thread(const InputCase& input) {
  const LoaderView& v = input.loader;
  const double per_batch = input.step_ms / std::max(input.batches_per_step, 1e-9);
  if (!v.history->has(kLoaderPinned) || v.pin_ms < kPinShare * per_batch) return std::nullopt;
  InputCause cause{.name = "GIL_BOUND",
                   .words = "the thread that pins memory takes " + percent(v.pin_ms / per_batch) +
                            " of the time",
                   .saving = std::min(input.fetch_share, v.pin_ms / per_batch)};
  cause.evidence = {{"pin_ms", v.pin_ms, "ms"}};
  cause.advice.push_back(
      {"Pin less in the training process: fewer, larger tensors a batch, or pin_memory=False; try "
       "both in this loop.",
       cause.saving, "Compare samples/s of two runs.",
       "The copy to the device was only fast because of it: look at h2d afterwards."});
  return cause;
}

}  // namespace

std::optional<InputCause> gil_bound(const InputCase& input) {
  if (!input.loader.inside) return std::nullopt;
  if (auto cause = own_threads(input)) return cause;
  return pin_thread(input);
}

}  // namespace stepscope::engine
