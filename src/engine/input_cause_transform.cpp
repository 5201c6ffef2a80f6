// SLOW_TRANSFORM: one callable of the dataset's transforms takes most of the workers' time. It is
// named; more workers are the second advice.
#include "engine/input_cause.h"
#include "engine/words.h"

namespace stepscope::engine {
namespace {

constexpr double kMost = 0.6;

}  // namespace

std::optional<InputCause> slow_transform(const InputCase& input) {
  const LoaderView& v = input.loader;
  if (!v.inside || v.transforms.empty() || v.transforms.front().share < kMost) return std::nullopt;
  const NamedShare& slow = v.transforms.front();
  InputCause cause{.name = "SLOW_TRANSFORM",
                   .words = slow.name + " takes " + percent(slow.share) + " of the time to load",
                   .saving = input.saving(1 - slow.share)};
  cause.evidence = {{"slow_transform_share", slow.share, "share"},
                    {"slow_transform_ms", slow.ms, "ms"}};
  cause.advice.push_back(
      {"Make " + slow.name + " cheaper: " + milliseconds(slow.ms) + " of the " +
           milliseconds(*v.batch_ms) +
           " that a batch takes. Do it once and store the result, or on whole batches (on the "
           "device).",
       cause.saving, "Run again: its share of the workers' time falls.",
       "It is random for each sample and cannot be done on a batch."});
  if (const auto more = more_workers(input)) cause.advice.push_back(*more);
  return cause;
}

}  // namespace stepscope::engine
