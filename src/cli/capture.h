// Runs a short command and returns its stdout.
//
// Thread safety: reentrant. Invariant: returns within the time given; a command that takes longer
// is killed.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace stepscope::cli {

// An Error names the program when it is missing, fails, or takes too long. At most 64 KB are kept.
Result<std::string> capture(const std::vector<std::string>& command, int seconds);

}  // namespace stepscope::cli
