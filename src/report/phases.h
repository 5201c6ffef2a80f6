// Steps, phases and their parts of each rank, and over the ranks.
//
// Thread safety: pure functions.
#pragma once

#include <vector>

#include "report/summary.h"

namespace stepscope::report {

// Fills steps, phases, parts, occurrences and ranks.
void fill_phases(const RunHistory& run, Summary& summary);

}  // namespace stepscope::report
