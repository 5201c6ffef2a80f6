// Where the time of the steady steps went: share(p) = mean over ranks of phase p / mean over ranks
// of the step.
//
// Ranks with fewer steady steps than Settings::min_steady_steps are left out; they could say
// nothing of a share. Thread safety: immutable once made. Lifetime: keeps pointers into the
// RunHistory it was made from. One pass over the steps at the start; a share is then O(ranks).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/bootstrap.h"
#include "model/history.h"

namespace stepscope::engine {

// A quantity in ns a step: a phase, a sum, a part of a phase, a user's phase.
struct Term {
  std::string name;  // a phase, "part." and the name of a part, "user." and that of a user's phase
  double factor = 1;
};
using Column = std::vector<Term>;
Column phase_column(std::initializer_list<Phase> phases);
Column part_column(const std::string& name);  // a name of StepBlock::part_mean_ns
Column user_column(const std::string& name);
Column without(Column column, const std::string& part);  // less a part that lies inside it

// A rare, regular cost, counted by occurrence: n x median cost / total time, means over ranks of
// both. Total time is the whole span of the rank, warm-up and what lies between steps included.
struct Rare {
  double share = 0;
  double count = 0;      // a rank, mean over those that had any
  double median_ms = 0;  // of one occurrence, largest of the ranks
};

class Shares {
 public:
  // Above it steps are read by tens: a mean over so many ranks has no noise of single steps, and a hub
  // asks often.
  static constexpr size_t kManyRanks = 255;

  struct Rank {
    const RankHistory* history = nullptr;
    int64_t steps = 0;  // steady
    int64_t first_step = 0, last_step = 0;
    double mean_ns = 0;  // of a step
    // A value a block, oldest first.
    std::vector<double> weight, total;
    std::map<std::string, std::vector<double>> values;  // by Term::name; blocks without it have 0
    std::map<std::string, double> means;                // of values, weighted

    double mean(const Column& column) const;
    double rare_share(OccurrenceKind kind) const;  // 0 under 2 occurrences
  };

  // Without the ranks of `left_out`.
  explicit Shares(const RunHistory& run, const std::set<int32_t>& left_out = {});

  const std::vector<Rank>& ranks() const { return ranks_; }
  // Of any rank, also of those left out.
  int64_t most_steady_steps() const { return most_steady_steps_; }
  int64_t steady_steps() const;  // of the shortest rank judged
  int64_t first_step() const;
  int64_t last_step() const;
  double step_ms() const;  // mean over ranks

  double share(const Column& column) const;
  Interval interval(const Column& column) const;
  std::optional<Rare> rare(OccurrenceKind kind) const;  // none where no rank has 2 occurrences
  std::vector<std::string> user_phases() const;

 private:
  std::vector<Rank> ranks_;
  int64_t most_steady_steps_ = 0;
};

}  // namespace stepscope::engine
