// Opens, follows and ends episodes, step by step (diagnosis.md section 2, "Windows").
//
//   P = ranks that are slow now and in no open episode
//   more than node_ranks of a node slow, at most node_others of all others: the node
//   else more ranks slow than a quarter: one group
//   else one episode a rank
//
// An episode ends when its delta in the shortest window stays under half of that at its opening. One that
// comes back within a window goes on; one that proves shorter than half of that window was noise and is taken
// back. An episode that a wider one explains (its rank is in the node, and both began within a window of each
// other) is taken into it.
// Thread safety: none. Lifetime: references to what it was made of. Invariant: an open episode's figures cover
// first_step to the newest step; an ended one's end at last_step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/slow_set.h"
#include "model/comparison.h"
#include "model/history.h"

namespace stepscope::engine {

class EpisodeKeeper {
 public:
  static constexpr int64_t kMostStride =
      4;  // steps from one look at the windows to the next, of very many ranks

  EpisodeKeeper(const RunHistory& run, const StepJoiner& joiner, const WorkWindow& window,
                Comparison& comparison);

  // The newest step of the window was just pushed, and counted in comparison.steps.
  void step();
  // The same for a step that was judged in an earlier call, the ordinal-th: only finds the fastest again.
  void replay(int64_t ordinal);
  void end_all();  // the job restarted

 private:
  struct Node {
    std::string name;
    std::vector<int32_t> ranks;  // positions
  };

  int64_t stride() const;
  bool due(int64_t ordinal) const;
  void keep_fastest(const WindowMedians& medians);
  void judge();
  void follow(const WindowMedians& medians);
  void open(const SlowSet& slow);
  void open_nodes(const SlowSet& slow, std::vector<char>& is_slow);
  void open_one(Episode episode, const std::vector<int32_t>& positions, const WindowMedians& now);
  void take_in(const std::vector<int32_t>& positions, int64_t first_step, size_t within);
  bool resume(const Episode& again, size_t within);
  void account();
  void count(Episode& episode, size_t index, size_t step, int sign);
  void end(Episode& episode, int64_t last_step);
  void measure(Episode& episode, const std::vector<int32_t>& slow, int64_t from);
  void explain(Episode& episode);
  void own_again();  // owner_ from the open episodes
  void drop_cheapest();

  double delta_of(const Episode& episode, const WindowMedians& medians) const;
  std::vector<double> above_fastest(const std::vector<int32_t>& positions, size_t from) const;
  size_t index_from(int64_t step) const;  // of the window: first step that is not before

  const RunHistory& run_;
  const StepJoiner& joiner_;
  const WorkWindow& window_;
  Comparison& comparison_;
  std::vector<Node> nodes_;
  std::vector<int32_t> node_of_;  // by position
  std::vector<int32_t> owner_;    // by position: index of its open episode, -1 none
  std::vector<int32_t> fastest_;  // positions
};

// Positions of an episode's ranks in run.ranks.
std::vector<int32_t> positions_of(const RunHistory& run, const Episode& episode);

}  // namespace stepscope::engine
