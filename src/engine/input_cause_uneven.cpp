// UNEVEN_SAMPLES: on average the workers would keep up; some batches take many times as long as
// others, and the step waits for those.
#include <algorithm>

#include "engine/input_cause.h"
#include "engine/words.h"

namespace stepscope::engine {
namespace {

constexpr double kUneven = 2.5;   // 95th percentile against the median
constexpr double kKeepsUp = 0.9;  // of the rest of the step

}  // namespace

std::optional<InputCause> uneven_samples(const InputCase& input) {
  const LoaderView& v = input.loader;
  if (!v.inside || input.workers() == 0 || !v.batch_p50_ms || !v.batch_p95_ms) return std::nullopt;
  const double spread = *v.batch_p95_ms / std::max(*v.batch_p50_ms, 1e-9);
  const double load = input.batch_ms() / input.workers();
  if (spread < kUneven || load > kKeepsUp * input.rest_ms()) return std::nullopt;
  InputCause cause{.name = "UNEVEN_SAMPLES",
                   .words = "some batches take " + number(spread) + " times as long as most",
                   .saving = input.fetch_share};
  cause.evidence = {{"batch_p50_ms", *v.batch_p50_ms, "ms"},
                    {"batch_p95_ms", *v.batch_p95_ms, "ms"},
                    {"batch_p99_ms", v.batch_p99_ms.value_or(0), "ms"}};
  const int32_t ahead = std::max(4, 2 * v.history->prefetch_factor);
  cause.advice.push_back(
      {"Load further ahead: DataLoader(prefetch_factor=" + std::to_string(ahead) +
           "), so that long batches are begun earlier.",
       cause.saving, "Run again: ready_share rises. Memory grows by the batches that lie ready.",
       "Long samples come one after the other."});
  cause.advice.push_back(
      {"Spread long samples: bucket by length or size, or cut the longest down beforehand.",
       std::nullopt, "Run again: batch_p95_ms comes near batch_p50_ms.",
       "The samples are alike and storage is what is uneven."});
  return cause;
}

}  // namespace stepscope::engine
