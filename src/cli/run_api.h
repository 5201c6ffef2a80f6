// The API of a run folder whether or not an agent answers for it: a live run is asked, of an ended
// one the files tell the same.
//
// Thread safety: one owner; answer() waits for the agent at most kAgentWait. Invariant: while the
// run lives without an agent (it was killed, another is starting) every answer is 503, never old
// data for new.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "cli/ended_run.h"
#include "serve/loop.h"

namespace stepscope::cli {

class RunApi {
 public:
  static constexpr std::chrono::milliseconds kAgentWait{3000};

  explicit RunApi(std::string run_folder);

  serve::Reply answer(const serve::Request& request);

 private:
  serve::Reply stored(const serve::Request& request);

  std::string run_folder_;
  std::shared_ptr<const EndedRun> stored_;
};

}  // namespace stepscope::cli
