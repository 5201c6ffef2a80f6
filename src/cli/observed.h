// Says which interpreters of a run were not observed, and why. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace stepscope::cli {

// boot_log: lines `pid|executable|version|state`, one or more a process, the last one counts.
// State: "0" torch was not imported, "1" it was, anything else is why nothing was recorded.
// recorded: pids that made a segment. Sentences for the card; empty when everything that imported
// torch was recorded and made steps.
std::vector<std::string> unobserved(std::string_view boot_log, const std::set<int32_t>& recorded,
                                    bool any_step, size_t ranks);

}  // namespace stepscope::cli
