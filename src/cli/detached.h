// The agent without a supervisor: leaves the process that started it, and founds the run.
#pragma once

#include <optional>

#include "base/result.h"
#include "cli/agent_loop.h"
#include "cli/segment_folder.h"

namespace stepscope::cli {

// Double fork and setsid; the first process ends with 0 as soon as the second is on its own. Every
// descriptor is let go.
Status detach();

// Makes the run folder below the caller's current folder, and run.txt. Empty when run.txt cannot be
// written.
std::optional<RunInfo> found_run(const AgentOptions& options);

}  // namespace stepscope::cli
