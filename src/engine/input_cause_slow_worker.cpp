// SLOW_WORKER: one worker takes longer than the others, and as batches are handed out in their
// order, all wait for it.
#include <algorithm>

#include "engine/input_cause.h"
#include "engine/median.h"
#include "engine/words.h"

namespace stepscope::engine {
namespace {

constexpr double kSlower = 1.5;     // than the median of the others
constexpr double kOfWaiting = 0.5;  // of the time that the training process waits
constexpr int64_t kLeastBatches = 5;

}  // namespace

std::optional<InputCause> slow_worker(const InputCase& input) {
  const LoaderView& v = input.loader;
  if (!v.inside || input.workers() < 2) return std::nullopt;
  const WorkerView* worst = nullptr;
  for (const WorkerView& w : v.workers) {
    if (!w.batch_ms || w.history->batches < kLeastBatches) continue;
    if (worst == nullptr || *w.batch_ms > *worst->batch_ms) worst = &w;
  }
  std::vector<double> others;
  for (const WorkerView& w : v.workers)
    if (&w != worst && w.batch_ms && w.history->batches >= kLeastBatches)
      others.push_back(*w.batch_ms);
  if (worst == nullptr || others.empty()) return std::nullopt;
  const double usual = median(others);
  if (*worst->batch_ms < kSlower * usual || worst->late_share < kOfWaiting) return std::nullopt;
  const auto number = std::to_string(worst->history->worker);
  InputCause cause{.name = "SLOW_WORKER",
                   .words = "worker " + number + " takes " + milliseconds(*worst->batch_ms) +
                            " a batch, the others " + milliseconds(usual)};
  // In order, the slow one sets the pace of all: workers batches in its time.
  const double load = *worst->batch_ms * input.batches_per_step / input.workers();
  const double mended = std::max(input.rest_ms(), load * usual / *worst->batch_ms);
  cause.saving = std::clamp(1 - mended / input.step_ms, 0.0, input.fetch_share);
  cause.evidence = {{"slow_worker", static_cast<double>(worst->history->worker), ""},
                    {"slow_worker_batch_ms", *worst->batch_ms, "ms"},
                    {"other_workers_batch_ms", usual, "ms"},
                    {"slow_worker_late_share", worst->late_share, "share"}};
  cause.advice.push_back(
      {"Find what worker " + number +
           " does that the others do not: its shard, its files, its share of an IterableDataset, "
           "worker_init_fn.",
       cause.saving, "Run again: the workers' batch_ms are alike.",
       "Its core is taken by another job."});
  if (!v.history->has(kLoaderAnyOrder))
    cause.advice.push_back({"Take batches as they come: DataLoader(in_order=False).", std::nullopt,
                            "Run again: late_share of the slow worker falls.",
                            "The order of samples must be the same from run to run."});
  return cause;
}

}  // namespace stepscope::engine
