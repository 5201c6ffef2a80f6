// What has become of a run since its step `since`: the frame that live views are sent.
//
// Thread safety: pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/history.h"

namespace stepscope::report {

// The newest step that ended, in any rank; absent before the first.
std::optional<int64_t> newest_step(const RunHistory& run);

// One JSON object on one line: {"type":"tick","state","step","age_s","duration_s",...}.
// age_s: since the newest step ended; absent where nobody knows.
std::string tick_json(const RunHistory& run, std::optional<int64_t> since,
                      std::optional<double> age_s);

}  // namespace stepscope::report
