// One run as the hub sees it: what all of its nodes sent, as one history.
//
//   join(node) --> have(node): the node sends what is newer --> update(node, ...) ... --> goodbye(node)
//        ^                                                          |
//        +--------------- connection lost, agent or hub restarted --+
//
// Nodes are told apart by their instance; their names are for people. A rank belongs to one node
// at a time: the first that reported it, until that one ended, was lost, or closed its process, or
// another has a later attempt of it. Its times stay on the clock of the node; when it moves to
// another node, the new clock is shifted so that they go on rising.
//
// Thread safety: none, one owner. Invariants: the same step is taken once, however often it is
// sent; any order of disconnects gives the same history as none, apart from steps that the node had
// no longer, which are counted and said. Bounded in ranks, nodes and what is kept of each rank.
// No clock: now_ns is given, and says when something was heard, not when it happened.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "hub/hub.pb.h"
#include "model/history.h"

namespace stepscope::hub {

class Job {
 public:
  static constexpr size_t kMaxRanks = 200'000, kMaxNodes = 20'000;
  static constexpr int64_t kVanishedNs = 60'000'000'000;  // without a word: given up
  static constexpr int64_t kUnseenGraceNs = 10'000'000'000;

  // run: empty, or as run.db has it. stored: as stored() gave it then.
  explicit Job(RunHistory run, const std::vector<std::string>& stored = {}, int64_t now_ns = 0);

  RunHistory& run() { return run_; }
  const RunHistory& run() const { return run_; }

  Result<size_t> join(const pb::Join& join, int64_t now_ns);  // the node's number
  pb::Have have(size_t node) const;
  struct Taken {
    bool send_again = false;  // the node is to be told again what we have
  };
  Result<Taken> update(size_t node, const pb::Update& update,
                       int64_t now_ns);  // Error: a broken promise
  void goodbye(size_t node, const pb::Goodbye& goodbye, int64_t now_ns);
  void lost(size_t node, int64_t now_ns);  // its connection

  const std::string& shown_name(size_t node) const { return nodes_[node].stored.shown(); }
  size_t node_count() const { return nodes_.size(); }
  size_t connected_count() const;
  bool has_lowest_rank(size_t node) const;
  int64_t lost_steps() const;
  // Every node said goodbye or was given up, and none is awaited whose ranks were never seen.
  bool is_over(int64_t now_ns) const;
  std::vector<std::string> unended_nodes() const;

  void note(const std::string& notice);  // the hub's own; once
  void refresh(int64_t now_ns);          // notices, duration, exit code, who does what
  // What else must be kept to go on from run.db, a piece a node, in their order.
  std::vector<std::string> stored() const;

 private:
  struct Node {
    pb::StoredNode stored;
    std::map<int32_t, pb::StoredRank> ranks;
    std::map<int32_t, int64_t> heard_ns;  // when a step of the rank last came
    std::map<int32_t, bool> declined;     // ranks that another node has
    int connections = 0;                  // an old one may end after the new one began
    int64_t gone_ns = 0, ended_ns = 0;
    bool given_up = false;
  };
  RankHistory& history_of(int32_t rank);
  bool may_take(int32_t rank, size_t node, const pb::RankUpdate& update, int64_t now_ns) const;
  void take_over(int32_t rank, size_t node, RankHistory& history);
  Status take_rank(size_t node, const pb::RankUpdate& update, int64_t now_ns, Taken& taken);
  Status take_steps(pb::StoredRank& stored, const pb::RankUpdate& update, RankHistory& history);
  int64_t shift_for(pb::StoredRank& stored, int64_t begin_ns, const RankHistory& history) const;

  RunHistory run_;
  std::vector<Node> nodes_;  // as run_.nodes
  std::map<std::string, size_t> by_instance_;
  std::map<int32_t, size_t> owners_;
  std::vector<std::string> own_notices_;
};

}  // namespace stepscope::hub
