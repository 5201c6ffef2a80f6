// The scan over the joined steps: episodes, sums, and what is left of the waiting.
//
//   run.db's raw steps -> StepJoiner -> WorkWindow (newest 112 judged steps) -> EpisodeKeeper
//                                            | steps that no episode can change any more
//                                            v
//                                    Comparison::settled   (+ those in the window = leftover)
//
// A call goes on where the one before stopped: it fills the window again from raw steps, then judges the new ones.
#include <algorithm>
#include <utility>

#include "engine/engine.h"
#include "engine/episode_keeper.h"
#include "engine/leftover.h"

namespace stepscope::engine {
namespace {

class Scan {
 public:
  explicit Scan(const RunHistory& run)
      : run_(run),
        out_(begin(run)),
        joiner_(run, out_.settled_step + 1),
        window_(run.ranks.size()),
        keeper_(run, joiner_, window_, out_) {
    if (out_.attempt != run.comparison.attempt) keeper_.end_all();
  }

  Comparison take() {
    JoinedStep step;
    // How many of the window were judged before.
    int64_t ordinal = out_.steps - std::min<int64_t>(out_.steps, WorkWindow::kHorizon);
    while (joiner_.next(step)) {
      const bool seen = step.step <= out_.last_step;
      // Not judged: perhaps because a node that the hub hears from later has the other ranks. Looked at again then.
      if (step.syncs.empty()) continue;
      if (!seen) out_.last_step = step.step;
      if (window_.full()) settle(seen);
      window_.push(step);
      if (seen) {
        // Only the last look before counts.
        if (++ordinal > out_.steps - EpisodeKeeper::kMostStride) keeper_.replay(ordinal);
        continue;
      }
      count(window_.step(window_.size() - 1));
      keeper_.step();
    }
    out_.leftover = out_.settled;
    for (size_t i = 0; i < window_.size(); ++i) add(out_.leftover, window_.step(i));
    return std::move(out_);
  }

 private:
  static Comparison begin(const RunHistory& run) {
    Comparison out = run.comparison;
    int32_t attempt = 0;
    for (const RankHistory& rank : run.ranks) attempt = std::max(attempt, rank.attempt);
    if (attempt == out.attempt) return out;
    out.attempt = attempt;  // its steps are numbered from 0 again
    out.last_step = out.settled_step = -1;
    out.settled = out.leftover;
    return out;
  }

  void settle(bool seen) {
    if (!seen) {
      add(out_.settled, window_.step(0));
      out_.settled_step = window_.step(0).step;
    }
    window_.pop();
  }

  void count(const JoinedStep& step) {
    ++out_.steps;
    out_.ranks = step.ranks;
    if (out_.first_judged_step < 0) out_.first_judged_step = step.step;
    out_.last_judged_step = step.step;
    out_.time_ns += step.time_ns;
    out_.cost_ns += step.cost_ns;
    auto& blocks = out_.blocks;
    if (blocks.empty() || blocks.back().steps >= static_cast<double>(out_.block_steps)) {
      if (blocks.size() == Comparison::kMaxSyncBlocks) halve();
      blocks.push_back({step.step, step.step, 0, 0, 0, 0, 0});
    }
    SyncBlock& block = blocks.back();
    block.last_step = step.step;
    block.steps += 1;
    block.time_ns += step.time_ns;
    block.transfer_ns += step.transfer_ns;
    block.cost_ns += step.cost_ns;
    block.wait_ns += step.wait_ns;
  }

  void halve() {
    std::vector<SyncBlock> pairs;
    for (size_t i = 0; i + 1 < out_.blocks.size(); i += 2) {
      SyncBlock a = out_.blocks[i];
      const SyncBlock& b = out_.blocks[i + 1];
      a.last_step = b.last_step;
      a.steps += b.steps;
      a.time_ns += b.time_ns;
      a.transfer_ns += b.transfer_ns;
      a.cost_ns += b.cost_ns;
      a.wait_ns += b.wait_ns;
      pairs.push_back(a);
    }
    out_.blocks = std::move(pairs);
    out_.block_steps *= 2;
  }

  void add(Leftover& leftover, const JoinedStep& step) {
    std::vector<size_t> active;
    for (size_t e = 0; e < out_.episodes.size(); ++e) {
      const Episode& episode = out_.episodes[e];
      if (episode.first_step <= step.step && (!episode.ended || step.step <= episode.last_step))
        active.push_back(e);
    }
    std::vector<std::vector<std::pair<int32_t, int32_t>>> key;
    for (const size_t e : active) key.push_back(out_.episodes[e].members);
    if (key != mended_key_ || mended_.empty()) {
      mended_.assign(run_.ranks.size(), 0);
      for (const size_t e : active)
        for (const int32_t r : positions_of(run_, out_.episodes[e]))
          mended_[static_cast<size_t>(r)] = 1;
      mended_key_ = std::move(key);
    }
    add_leftover(leftover, step, mended_, run_, joiner_);
  }

  const RunHistory& run_;
  Comparison out_;
  StepJoiner joiner_;
  WorkWindow window_;
  EpisodeKeeper keeper_;
  std::vector<char> mended_;
  std::vector<std::vector<std::pair<int32_t, int32_t>>> mended_key_;  // whose ranks these are
};

}  // namespace

Comparison compare_ranks(const RunHistory& run) {
  if (run.ranks.size() < 2) return run.comparison;
  return Scan(run).take();
}

}  // namespace stepscope::engine
