// How the hub and those who look for its runs know its folders, and a node's folder whose summary
// came from the hub.
//
//   RUN/run.db.hub        a run of a hub: the run's id. RUN/run.db is the whole run's
//   RUN/summary.json.hub  a run of a node: summary.json and summary.txt are the whole run's, from
//                         the hub; RUN/run.db is still of the node's own ranks
//
// Thread safety: reentrant.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "hub/hub.pb.h"

namespace stepscope::cli {

Status mark_hub_folder(const std::string& folder, const std::string& run_id);
std::optional<std::string> hub_run_id(const std::string& folder);  // none: no run of a hub

// Name of the folder in /dev/shm for a hub's run.
std::string hub_meeting_name(const std::string& run_folder);

// The whole run's summary takes the place of the node's own. The card's as plain text.
Status write_summary_of_hub(const std::string& folder, const hub::pb::JobSummary& summary);
bool has_summary_of_hub(const std::string& folder);
std::string told_folder_of_hub(
    const std::string& folder);  // where the whole run is, on the hub's machine; empty: not told

}  // namespace stepscope::cli
