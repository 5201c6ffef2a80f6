// HANDOVER_BOUND: making batches of samples and bringing them to the training process takes most of
// the time: collating (which copies into shared memory), pickling, the pipe, unpickling.
#include "engine/input_cause.h"
#include "engine/words.h"

namespace stepscope::engine {
namespace {

constexpr double kMost = 0.5;
constexpr double kThroughPipe = 256 * 1024;  // bytes a batch: more is no shared memory

}  // namespace

std::optional<InputCause> handover_bound(const InputCase& input) {
  const LoaderView& v = input.loader;
  if (!v.inside || v.handover_share < kMost) return std::nullopt;
  InputCause cause{
      .name = "HANDOVER_BOUND",
      .words = "handing batches over takes " + percent(v.handover_share) + " of making them",
      .saving = input.saving(1 - v.handover_share)};
  // In the training process nothing runs beside it.
  const double of_step = (v.receive_ms + v.unpickle_ms) * input.batches_per_step / input.step_ms;
  if (cause.saving < of_step) cause.saving = std::min(input.fetch_share, of_step);
  cause.evidence = {{"pickle_ms", v.pickle_ms, "ms"},
                    {"receive_ms", v.receive_ms, "ms"},
                    {"unpickle_ms", v.unpickle_ms, "ms"},
                    {"pipe_bytes_per_batch", v.bytes_per_batch, "bytes"}};
  if (v.bytes_per_batch >= kThroughPipe)
    cause.advice.push_back(
        {"Hand tensors over, not NumPy arrays or objects: " + bytes(v.bytes_per_batch) +
             " a batch go through a pipe, where tensors would lie in shared memory.",
         cause.saving, "Run again: pipe_bytes_per_batch falls below 64 KB.",
         "The batch is made of many small tensors: then stack them first."});
  cause.advice.push_back(
      {"Hand over less: uint8 instead of float32 (a quarter) and normalise on the device; crop "
       "before collating; one tensor instead of many.",
       cause.saving, "Run again: collate_share and handover_share fall.",
       "The model needs all of it in full precision from the loader."});
  return cause;
}

}  // namespace stepscope::engine
