// Finishes runs whose processes are all gone: drains what the ring still holds, writes the summary,
// removes the segments. Any command may do it at any time; agent.lock decides who does.
//
// Thread safety: reentrant over processes. Invariant: a run with a living process or agent is never
// touched, nor one of another pid namespace (a container's processes cannot be seen from here)
// until it has lain still for a day.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace stepscope::cli {

enum class Recovery { kFinished, kRemoved, kLive, kBusy, kForeign, kFailed };

// One segment folder. `said` gets what went wrong.
Recovery finish_segment_folder(const std::string& folder, std::string* said = nullptr);
void finish_dead_run(const std::string& folder);  // the same, for join_segment_folder

// A run folder whose run.db says live although no process and no segment folder of it is left.
Status finish_run_folder(const std::string& run_folder);

// Every segment folder of this user, until `go_on` says no.
struct Recovered {
  int finished = 0, removed = 0, live = 0, foreign = 0;
  std::vector<std::string> problems;
};
Recovered finish_dead_runs(const std::function<bool()>& go_on);

}  // namespace stepscope::cli
