// The nodes of a simulated run at a real hub: one link a node, through the wire.
//
// Thread safety: none; one owner. Lifetime: links end with it. Invariant: between two calls the ranks are all in
// the run again.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "hub/link.h"
#include "model/history.h"

namespace stepscope::cli {

class SimulatedNodes {
 public:
  static constexpr size_t kMost = 1024;  // nodes: a thread and a connection each

  // hub: as check_hub_flags gave it. run: with its ranks; their nodes are the nodes.
  static Result<SimulatedNodes> join(const std::map<std::string, std::string>& hub,
                                     const RunHistory& run);

  void offer(RunHistory& run);  // what is new of every node
  // All say goodbye; the hub's summary of the whole run, or why there is none.
  Result<hub::pb::JobSummary> finish(RunHistory& run);

 private:
  struct Node {
    std::string name;
    std::unique_ptr<hub::Link> link;
    RunHistory part;  // its ranks are lent by the run
  };
  void lend(RunHistory& run);
  void give_back(RunHistory& run);

  std::vector<Node> nodes_;
  std::map<std::string, size_t> index_;  // by name
};

}  // namespace stepscope::cli
