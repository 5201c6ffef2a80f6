// Run history in, findings out. Pure: no clock, no I/O, no state between calls; the same input
// gives the same output (the bootstrap's seed is fixed). One file a rule; the rules are listed in
// engine.cpp.
#pragma once

#include <vector>

#include "model/finding.h"
#include "model/history.h"

namespace stepscope::engine {

// The ranks against each other, by their sync points: run.comparison carried on over the complete steps after it. The
// owner of a live run calls it about once a second and once at the end (run.live = false), and keeps the answer in
// run.comparison, from which diagnose() speaks; one call over a finished run gives the same answer.
Comparison compare_ranks(const RunHistory& run);

// Ordered: the first is the verdict (order of diagnosis.md section 1). Never empty.
std::vector<Finding> diagnose(const RunHistory& run);

}  // namespace stepscope::engine
