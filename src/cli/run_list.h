// Finds runs: by folder, name or id, and lists those below a folder.
//
// Thread safety: reentrant. Reads only; whatever lies in a folder is data and may be damaged.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/identity.h"
#include "model/history.h"

namespace stepscope::cli {

// What a list shows of a run. Fields are absent where its files do not tell.
struct RunRow {
  std::string folder, name, id;
  std::string state;            // "live", "ended", "unfinished" (nobody finished it yet), "damaged"
  int64_t started_wall_ns = 0;  // of the folder when the run does not tell
  std::optional<double> duration_s;
  std::optional<int64_t> ranks, steps;
  std::optional<int> exit_code;
  std::string verdict, severity, title;
};

// Segment folder of a run that has one, living or not.
std::optional<std::string> segment_folder_of(const std::string& run_folder);
bool is_live(const std::string& run_folder);           // an agent or a process of it is alive
std::string run_id_in(const std::string& run_folder);  // empty when there is none

// Store::read, and an Error for a database that never got its first commit.
Result<RunHistory> read_history(const std::string& run_folder);
Error nothing_recorded(const std::string& run_folder);  // that one

RunRow row_of(const std::string& run_folder);
std::vector<RunRow> list_runs(const std::string& parent);  // newest first

// The folders that `stepscope-runs` means here: the current folder's; where it has none, the
// fallback places.
std::vector<std::string> run_places(const std::string& cwd, const Environment& environment);

// RUN of the command line: a folder, a name or an id below any run place; empty: the newest of
// run_places().
Result<std::string> resolve_run(const std::string& run, const std::string& cwd,
                                const Environment& environment);

}  // namespace stepscope::cli
