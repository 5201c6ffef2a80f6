// TOO_MANY_WORKERS: more of them than cores, and it shows: they could have run and had no core, or
// the group was throttled (D12, D13). With storage or one transform slow as well, this comes first:
// their times are stretched by it.
#include <algorithm>
#include <cmath>

#include "engine/input_cause.h"
#include "engine/words.h"

namespace stepscope::engine {
namespace {

constexpr double kCoreWait = 0.25;   // of the workers' time
constexpr double kThrottled = 0.10;  // of the periods

}  // namespace

std::optional<InputCause> too_many_workers(const InputCase& input) {
  const LoaderView& v = input.loader;
  if (!v.inside || input.cores <= 0 || input.workers() <= std::max(1.0, input.cores))
    return std::nullopt;
  const double core_wait = v.core_wait_share.value_or(0);
  const double throttled = input.throttled_share.value_or(0);
  if (core_wait < kCoreWait && throttled < kThrottled) return std::nullopt;
  const auto fits = std::max(1, static_cast<int32_t>(std::floor(input.cores)) - 1);
  // What the training process lost to them is what it can win back.
  const double lost = input.train_core_wait_share.value_or(0);
  InputCause cause{.name = "TOO_MANY_WORKERS",
                   .words = plural(input.workers(), "worker", "workers") + " share " +
                            number(input.cores) + (input.cores == 1 ? " core" : " cores"),
                   .saving = std::min(input.fetch_share + lost, lost + throttled)};
  cause.evidence = {{"cores_of_rank", input.cores, "cores"},
                    {"workers_core_wait_share", core_wait, "share"}};
  if (input.throttled_share) cause.evidence.push_back({"throttled_share", throttled, "share"});
  cause.advice.push_back(
      {"Load in " + plural(fits, "worker process", "worker processes") + " a rank instead of " +
           std::to_string(input.workers()) + ": " + input.cores_why + ", and one trains.",
       cause.saving, "Run again: samples/s do not fall, and less time is spent without a core.",
       "The cores are taken by other jobs: then ask for more of them."});
  return cause;
}

}  // namespace stepscope::engine
