// DECODE_BOUND: decoding takes most of the time to load, and computes. Where no decoder that we know
// was called, what the dataset computes itself counts, once cores for more workers are used up.
#include <algorithm>

#include "engine/input_cause.h"
#include "engine/words.h"

namespace stepscope::engine {
namespace {

constexpr double kMost = 0.5;

}  // namespace

std::optional<InputCause> decode_bound(const InputCase& input) {
  const LoaderView& v = input.loader;
  if (!v.inside) return std::nullopt;
  const bool computes = v.cpu_share || input.workers() == 0;
  const double own =
      computes && !more_workers(input) ? std::max(0.0, v.own_share - v.storage_share) : 0;
  const double share = v.decode_share + own;
  if (share < kMost) return std::nullopt;
  const bool known = v.decode_share >= own;
  InputCause cause{.name = "DECODE_BOUND",
                   .words = (known ? "decoding takes " : "decoding in the dataset takes ") +
                            percent(share) + " of the time to load",
                   .saving = input.saving(1 - share)};
  cause.evidence = {{"decoding_share", v.decode_share, "share"},
                    {"dataset_computes_share", own, "share"}};
  cause.advice.push_back(
      {"Decode less: store samples at the size that is trained on (or decoded, as arrays), or read "
       "them at a smaller scale (Pillow's Image.draft, reduced decoding of OpenCV).",
       cause.saving, "Run again: decode_share falls.",
       "Storage is slow: decoded samples are several times as large."});
  if (const auto more = more_workers(input)) cause.advice.push_back(*more);
  return cause;
}

}  // namespace stepscope::engine
