// A rank's history as the charts read it: single steps where they are kept, rollups where they are not, in the
// order of time, each once.
//
//   rollups of 1,000 | of 100 | of 10 | steps        the finest that there is, from left to right
//
// Of the rank's newest process: a restart numbers its steps from 0 again. Steps that failed, were paused or lost
// records tell nothing about time and are left out; warm-up is in it. Numbers are those of the job: a rank that
// counts otherwise is shifted (engine/joined_steps.h).
//
// Thread safety: none. Lifetime: points into the RunHistory. Cost: a rank is walked once, when its pieces are first
// asked for, and then kept: 32 bytes a piece.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "model/history.h"
#include "report/statistics.h"

namespace stepscope::report {

struct StepRange {  // both ends included
  int64_t from = 0;
  int64_t to = std::numeric_limits<int64_t>::max();
};

struct Piece {
  const StepSample* sample = nullptr;  // a step
  const StepBlock* block = nullptr;    // or a rollup
  int64_t first_step = 0, last_step = 0;

  int64_t count() const { return block != nullptr ? block->count : 1; }
  int64_t begin_ns() const { return block != nullptr ? block->begin_ns : sample->begin_ns; }
  int64_t end_ns() const { return block != nullptr ? block->end_ns : sample->end_ns; }
  // Mean of a phase, or of the step for kTotal.
  double ns(size_t phase) const {
    if (block != nullptr) return block->mean_ns[phase];
    return static_cast<double>(phase < kTotal ? sample->phase_ns[phase] : sample->total_ns());
  }
  double least_ns() const {
    return static_cast<double>(block != nullptr ? block->min_ns[kTotal] : sample->total_ns());
  }
  double most_ns() const {
    return static_cast<double>(block != nullptr ? block->max_ns[kTotal] : sample->total_ns());
  }
  // use(name, mean ns) for each of the user's phases; those of a built-in name too.
  template <typename Use>
  void each_user(Use use) const {
    if (block != nullptr)
      for (const auto& [name, ns] : block->user_mean_ns) use(name, ns);
    else
      for (const auto& [name, ns] : sample->user_phase_ns) use(name, static_cast<double>(ns));
  }
};

// Of which times are known.
inline bool is_timed(const StepSample& s) { return !s.failed && !s.paused && !s.incomplete; }

class Pieces {
 public:
  explicit Pieces(const RunHistory& run);

  // By position in RunHistory::ranks.
  std::span<const Piece> of(size_t position, const StepRange& range = {});
  // The steps there are, over all ranks; to < from: none.
  const StepRange& all();
  int64_t offset(size_t position) const { return offsets_[position]; }  // job step - own step

 private:
  std::optional<StepRange> steps_of(size_t position);

  const RunHistory& run_;
  std::vector<int64_t> offsets_;
  std::optional<StepRange> all_;
  std::vector<std::optional<std::vector<Piece>>> kept_;  // by position
};

}  // namespace stepscope::report
