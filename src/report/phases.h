// Steps, phases and their parts of each rank, and over the ranks.
//
// Thread safety: pure functions.
#pragma once

#include <array>
#include <vector>

#include "report/summary.h"

namespace stepscope::report {

// Fills steps, phases, parts, occurrences and ranks.
void fill_phases(const RunHistory& run, Summary& summary);

// Which phases there is a time to give of; 0 is one.
std::array<bool, kPhaseCount> measured_phases(const RunHistory& run);

}  // namespace stepscope::report
