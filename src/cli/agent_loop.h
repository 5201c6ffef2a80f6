// The agent: a process of its own beside the training, one a node and run.
//
//   started by the owner's supervisor (`agent --segments DIR`; run.txt is there), or by the first
//   trace_step of a process without one (`agent --detach ...`; makes run folder and run.txt itself)
//        |  agent.lock: a second one ends at once
//   [recording]  poll 4 to 10 times a second, sample and commit once a second, answer the API
//        |  no member's and no segment's process lives (looked at under the folder's lock, then
//        |  `ended` is made)
//   [ending]     drain, run.db, summary, remove the folder
//
// What the user must hear at once goes to stderr, a line each: under a supervisor that is a pipe to
// it. A line `folder=PATH` names where the summary went.
//
// Thread safety: one thread. Signals: SIGUSR1 and SIGTERM write the summary of this moment and go
// on; the agent ends with its run, never before. In a session of its own, so that ^C at the
// terminal is not for it.
#pragma once

#include <string>
#include <vector>

#include "cli/hub_options.h"

namespace stepscope::cli {

struct AgentOptions {
  std::string segments;  // the folder
  bool detach = false;
  // for detach, where nobody wrote run.txt
  std::string id, cwd, name;
  std::string command_json;
  HubFlags hub;
};

int run_agent(const AgentOptions& options);  // exit code

}  // namespace stepscope::cli
