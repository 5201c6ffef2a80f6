// TOO_FEW_WORKERS: the work parallelises, the workers (or the training process itself) are busy all
// the time, and there is room for more.
#include "engine/input_cause.h"
#include "engine/words.h"

namespace stepscope::engine {
namespace {

constexpr double kBusy = 0.8;

}  // namespace

std::optional<InputCause> too_few_workers(const InputCase& input) {
  const LoaderView& v = input.loader;
  if (!v.inside) return std::nullopt;
  const bool busy = input.workers() == 0 || v.busy_share.value_or(0) >= kBusy;
  const auto more = more_workers(input);
  if (!busy || !more) return std::nullopt;
  InputCause cause{.name = "TOO_FEW_WORKERS",
                   .words = input.workers() == 0 ? "the training process makes its batches itself"
                            : input.workers() == 1
                                ? "its one worker is busy " + percent(*v.busy_share)
                                : "its workers are busy " + percent(*v.busy_share),
                   .saving = more->gain.value_or(0)};
  cause.advice.push_back(*more);
  return cause;
}

}  // namespace stepscope::engine
