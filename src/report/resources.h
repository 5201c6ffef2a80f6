// What the run used of its machines, and how much it got done with it.
//
// Thread safety: pure functions.
#pragma once

#include "report/summary.h"

namespace stepscope::report {

void fill_resources(const RunHistory& run, Summary& summary);
void fill_throughput(const RunHistory& run, Summary& summary);  // after fill_phases

}  // namespace stepscope::report
