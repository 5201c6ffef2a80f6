// Everything that a command started, wherever it put itself: sessions, groups and daemons of its
// own included.
//
// This process becomes the reaper of its descendants (PR_SET_CHILD_SUBREAPER), so that none of them
// can leave it by forking twice. Ending: first all but helpers that clean up after others when those
// are gone (multiprocessing's resource tracker, torch's manager of shared memory), then, kGraceNs
// later, whatever is left.
//
// SIGKILL and nothing gentler: a script that saves a checkpoint when it is asked to stop must not
// save one of a trial.
//
// Thread safety: one thread, and no other child of this process may be waited for meanwhile.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace stepscope::cli {

inline constexpr int64_t kGraceNs = 1'000'000'000;

void become_reaper();

// Living processes below `pid`, in no order. root: "" reads /proc, else <root>/proc.
std::vector<pid_t> descendants(pid_t pid, const std::string& root = "");

// Ends and reaps all of them. Returns when they are gone.
void end_descendants();

}  // namespace stepscope::cli
