// The environment in which a command is observed: where its segments go, and our folder first on
// PYTHONPATH.
//
// Thread safety: reads environ; one thread.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/identity.h"
#include "model/settings.h"

namespace stepscope::cli {

// inject: the folder of our sitecustomize, where it was found. more: set as well.
std::vector<std::string> observed_environment(
    const std::string& segment_folder, const std::string& run_id,
    const std::optional<std::string>& inject, const Settings& settings,
    const Environment& environment, std::vector<std::pair<std::string, std::string>> more = {});

}  // namespace stepscope::cli
