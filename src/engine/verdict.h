// The order of findings; the first is the verdict. Pure.
//
//   STUCK; critical memory findings; warnings and critical ones by predicted saving over the run; SLOWED_DOWN;
//   COMPUTE_BOUND; info; NO_BOTTLENECK; INSUFFICIENT_DATA, which is the verdict only when nothing
//   else can be said
#pragma once

#include <vector>

#include "model/finding.h"

namespace stepscope::engine {

void order_findings(std::vector<Finding>& findings);

}  // namespace stepscope::engine
