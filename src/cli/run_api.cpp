#include "cli/run_api.h"

#include <utility>

#include "cli/recover.h"
#include "cli/run_list.h"
#include "cli/segment_folder.h"
#include "serve/client.h"

namespace stepscope::cli {
RunApi::RunApi(std::string run_folder) : run_folder_(std::move(run_folder)) {}

serve::Reply RunApi::answer(const serve::Request& request) {
  const auto segments = segment_folder_of(run_folder_);
  if (segments && agent_alive(*segments)) {
    auto reply = serve::exchange(*segments + "/api.sock", request, kAgentWait);
    if (reply) return std::move(*reply);
    return serve::error_reply(503, "the agent of this run does not answer", "");
  }
  if (segments && any_process_alive(*segments))
    return serve::error_reply(503, "the agent of this run is gone; the training goes on",
                              "stepscope show " + run_folder_);
  if (segments) (void)finish_segment_folder(*segments, nullptr);
  return stored(request);
}

serve::Reply RunApi::stored(const serve::Request& request) {
  if (!stored_ || stored_->stamp() != EndedRun::stamp_of(run_folder_)) {
    auto read = EndedRun::read(run_folder_);
    if (!read) return serve::error_reply(503, read.error().message, read.error().hint);
    stored_ = *read;
  }
  return stored_->answer(request);
}

}  // namespace stepscope::cli
