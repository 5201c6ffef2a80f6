// Run history in, findings out. Pure: no clock, no I/O, no state between calls; the same input
// gives the same output (the bootstrap's seed is fixed). One file a rule; the rules are listed in
// engine.cpp.
#pragma once

#include <vector>

#include "model/finding.h"
#include "model/history.h"

namespace stepscope::engine {

// Ordered: the first is the verdict (order of diagnosis.md section 1). Never empty.
std::vector<Finding> diagnose(const RunHistory& run);

}  // namespace stepscope::engine
