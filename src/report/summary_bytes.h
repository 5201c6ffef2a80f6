// A Summary as bytes, and back: what run.db keeps of an ended run, so that showing it again takes no walk over its
// steps.
//
//   layout number | version of stepscope | every field in its order, little-endian, lists and texts with their length
//
// Thread safety: pure. Invariants: what comes back is what was put in, to the last bit; bytes of another layout or
// version are nothing, since that one may have judged otherwise; any bytes can be read.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "report/summary.h"

namespace stepscope::report {

std::string to_bytes(const Summary& summary);
std::optional<Summary> summary_from_bytes(std::string_view bytes);

}  // namespace stepscope::report
