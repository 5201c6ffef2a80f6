// The agent's part in a run of several nodes: starts the hub where this node is to hold it, and again
// when it was killed, joins the run there when it knows which run this is, hands over the history, and at the end takes the
// summary of the whole run.
//
// Without a hub in run.txt all of it does nothing. Thread safety: none; the agent's thread.
// Invariant: nothing here waits but finish(), and that only until its deadline; without a hub that
// answers the node has all that it would have without this.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/segment_folder.h"
#include "hub/link.h"
#include "model/history.h"

namespace stepscope::cli {

class HubMember {
 public:
  static constexpr int64_t kFinishNs = 4'000'000'000;  // less than the supervisor waits for us

  HubMember(const RunInfo& info, const std::string& segment_folder);

  void tick(const RunHistory& run, int64_t now_ns);

  // The hub speaks for all nodes: what this one finds among its own ranks is then not said.
  bool joined() const;
  std::vector<std::string> news();

  // `folder`: where the node's own summary was written. What the user must hear, if anything.
  std::string finish(const RunHistory& run, const std::string& folder, int64_t deadline_ns);

 private:
  void start_hub();
  void keep_hub(int64_t now_ns);
  void join(const RunHistory& run, bool last_chance);
  std::string value(const char* key) const;

  RunInfo info_;
  std::string segment_folder_;
  pid_t hub_pid_ = -1;
  int64_t hub_started_ns_ = 0, hub_pause_ns_ = 0;
  std::unique_ptr<hub::Link> link_;
  std::string problem_;  // why there will be no link
};

}  // namespace stepscope::cli
