// What has become of a run since its step `since`: the frame that live views are sent.
//
// Thread safety: pure. Bounded: kMostSteps. Cost grows with the steps since then, not with the run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/history.h"

namespace stepscope::report {

inline constexpr int64_t kMostSteps = 500;

// The newest step that most ranks have ended; absent before the first. A rank that was restarted
// counts from 0 again, and so does this.
std::optional<int64_t> newest_step(const RunHistory& run);

// One JSON object on one line: {"type":"tick","state","step","age_s","duration_s","series":{...}}.
// series: the steps after `since`, as /v1/series has them, the mean over the ranks; "gap":true
// where older ones were left out. Absent without `since`, and where there is nothing new.
// age_s: since the newest step ended; absent where nobody knows.
std::string tick_json(const RunHistory& run, std::optional<int64_t> since,
                      std::optional<double> age_s);

}  // namespace stepscope::report
