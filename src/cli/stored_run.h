// A run that a command takes its numbers from: RUN of the command line to its whole history.
//
// Thread safety: reentrant. Finishes runs whose processes are all gone first, as every command does; a live run is what
// its run.db holds at this moment, at most a second old.
#pragma once

#include <string>

#include "base/result.h"
#include "model/history.h"

namespace stepscope::cli {

// RUN as a folder that holds a run.db. live: it goes on.
struct StoredRun {
  std::string folder;
  bool live = false;
};
Result<StoredRun> find_stored_run(const std::string& run);
Result<RunHistory> read_stored_run(const StoredRun& run);

// Both. A folder, name or id as `show` takes it, or a run's run.db or summary.json. Of a run with a hub on this node: all its
// nodes'.
Result<RunHistory> stored_run(const std::string& run);

}  // namespace stepscope::cli
