// Two runs against each other: what changed, in which phase, on which ranks, and whether it is more than noise.
//
// Only steady steps; warm-up is compared apart and judged by nobody. A change is real when its interval excludes 0 and it
// is at least kLeastShare of a step of A (for a phase kLeastPhaseShare). Intervals are 99 %: a gate runs often, and one
// false alarm in a hundred runs is what it may cost. Phases share that 1 % among themselves, as ranks do. An interval
// knows the noise within the two runs and not what another day or machine would do: incomparable() says what is known
// to differ.
//
// Thread safety: pure. Cost: one pass over the blocks of each rank, O(points) an interval.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/history.h"

namespace stepscope::engine {

inline constexpr double kChangeLevel = 0.01;                           // 99 % intervals
inline constexpr double kLeastShare = 0.01, kLeastPhaseShare = 0.005;  // of a step of A

// B less A, in ms a step. Absent: not measured in a run, or not in both.
struct Change {
  std::optional<double> a_ms, b_ms;
  std::optional<double> change_ms;
  std::optional<double> low_ms, high_ms;  // absent too where nothing is known of the spread
  bool real = false;
};

struct PhaseChange {
  std::string name;
  bool user = false;
  Change change;
};

struct RankChange {
  int32_t rank = 0;
  std::string node;   // in B
  Change own;         // step less sync: what the rank does itself
  std::string phase;  // that changed most in the direction of `own`, not sync
  double phase_change_ms = 0;
};

enum class Direction : uint8_t { kSame, kSlower, kFaster };

struct RunChange {
  Direction direction = Direction::kSame;
  Change step;
  std::optional<double> share, low_share, high_share;  // of a step of A
  std::optional<double> detectable_share;  // a change of this size would have been called real
  std::vector<PhaseChange> phases;         // twelve, then the users' by name
  std::vector<RankChange> ranks;           // in both runs, by rank; none with one rank
  std::vector<int32_t> from_ranks;         // whose own work really changed as the step did; by rank
  Change warmup;                           // mean of a warm-up step; never real
  int64_t steps_a = 0, steps_b = 0;        // steady, of the shortest rank
};
// Call it where incomparable() has no reason that forbids it.
RunChange compare_runs(const RunHistory& a, const RunHistory& b);

enum class Obstacle : uint8_t {
  kRemark,  // worth knowing
  kWork,  // a step is not the same work in both: forbids the comparison unless it is wanted all the same
  kTooFew,  // forbids it
};
struct Incomparable {
  Obstacle obstacle = Obstacle::kRemark;
  std::string what;  // world_size, samples_per_step, steps, cores, torch, ...
  std::string a, b;  // what it is in each; may be empty
  std::string text;  // a sentence
};
std::vector<Incomparable> incomparable(const RunHistory& a, const RunHistory& b);

}  // namespace stepscope::engine
