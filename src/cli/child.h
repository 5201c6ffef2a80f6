// Starts the user's command as it would start without us, and our own processes.
//
// Thread safety: reentrant; the supervisor has one thread. Invariant: the child has the signal mask
// and dispositions, descriptors, folder, group and terminal that we were given; only the
// environment's additions differ.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "cli/identity.h"
#include "cli/signals.h"

namespace stepscope::cli {

// `train.py ...` is run with python, else python3, of PATH; anything else stands as it is.
Result<std::vector<std::string>> runnable(std::vector<std::string> command,
                                          const Environment& environment);

// The environment as it is with these set, order and oddities kept.
std::vector<std::string> environment_with(
    const std::vector<std::pair<std::string, std::string>>& additions);

// What exec failed with, in words, and the exit code that shells give for it: 127 not found, 126
// not executable.
struct ExecFailure {
  int exit_code = 126;
  Error error;
};
ExecFailure exec_failure(const std::string& program, int error_number);

struct Started {
  pid_t pid = -1;
  int error_number = 0;  // of fork or exec; 0 when it runs
};
Started start_child(const std::vector<std::string>& command,
                    const std::vector<std::string>& environment, const Signals& signals);

// Another process of ours, with the signals as they are blocked here. Descriptors of this process:
// input is its 0, output its 1 and 2, extra its 3; -1: /dev/null, or none. Its pid; -1: none came.
struct OwnFds {
  int input = -1, output = -1, extra = -1;
};
pid_t start_own(const std::vector<std::string>& command, const OwnFds& fds);
// The same in a session of its own, with an empty stdin and both outputs in `output`. It is asked to
// end (SIGTERM) when we die.
Started start_apart(const std::vector<std::string>& command,
                    const std::vector<std::string>& environment, const Signals& signals,
                    const Fd& output);

// `stepscope agent --segments FOLDER` with both outputs in a pipe that we read.
struct StartedAgent {
  pid_t pid = -1;
  Fd output;
};
StartedAgent start_agent(const std::string& segment_folder);

// Becomes the command (STEPSCOPE=0). Returns only when that fails.
ExecFailure become(const std::vector<std::string>& command);

}  // namespace stepscope::cli
