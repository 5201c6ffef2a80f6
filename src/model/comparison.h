// What is known of the ranks against each other: who held the others up, from when to when, and what that and the
// rest of the waiting cost. The engine carries it on from step to step (engine::compare_ranks), so that it covers
// the whole run although raw steps are trimmed.
//
// Thread safety: plain values. Invariant: bounded at any length of the run (kMaxEpisodes, kMaxSyncBlocks, fixed
// histograms). Steps are job steps: those of the lowest rank. Times in ns; sums are doubles.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/finding.h"

namespace stepscope {

struct PhaseExcess {
  std::string phase;
  double ns = 0;  // a step, more than the fastest ranks
  bool operator==(const PhaseExcess&) const = default;
};

// One fault from its beginning to its end: a rank, a node or a group of ranks whose own work took longer.
struct Episode {
  static constexpr size_t kMaxRanges = 1024;
  std::string code;     // STRAGGLER, IMBALANCE
  std::string pattern;  // persistent, groups
  Scope scope = Scope::kRank;
  int32_t rank = -1;                                 // of scope rank
  std::string node;                                  // of scope rank and node
  std::vector<std::pair<int32_t, int32_t>> members;  // ranges of ranks, both ends included
  int64_t opened_step = 0;                           // when it was noticed
  int64_t opened_at = 0;                             // Comparison::steps at that moment
  int64_t first_step = 0, last_step = 0;             // estimated beginning; end, or the newest step
  bool ended = false;
  int64_t below_for = 0;                // steps in a row in which it looked healthy
  double opening_delta = 0, delta = 0;  // share of the step by which its own work is longer
  double steps = 0, time_ns = 0;        // judged steps of the episode, and their time
  double saved_ns = 0;         // of time_ns, had its work been as long as that of the fastest ranks
  double saved_by_all_ns = 0;  // the same for all that were slow at the time
  double excess_ns = 0;        // more work a step than the fastest ranks
  std::vector<PhaseExcess> phases;  // where that lies, largest first
  double samples_ratio = 0;         // samples a step over those of the fastest ranks; 0: not known
  bool operator==(const Episode&) const = default;
};

// Consecutive judged steps together: what the waiting consists of.
struct SyncBlock {
  int64_t first_step = 0, last_step = 0;
  double steps = 0, time_ns = 0, transfer_ns = 0, cost_ns = 0, wait_ns = 0;
  bool operator==(const SyncBlock&) const = default;
};

struct Spike {
  int64_t step = 0;
  int32_t rank = 0;  // arrived last
  std::string phase;
  double cost_ns = 0;
  bool operator==(const Spike&) const = default;
};

// Counts and sums by size, four bins an octave from 1 us on.
struct SizeHistogram {
  static constexpr size_t kBins = 128;
  std::array<double, kBins> count{}, sum{};
  bool operator==(const SizeHistogram&) const = default;
};

// The waiting that is left once the slow ranks of the episodes are mended.
struct Leftover {
  static constexpr size_t kMaxSpikes = 16, kMaxLate = 16;
  double steps = 0, syncs = 0, time_ns = 0, cost_ns = 0;
  double most_ranks = 0;
  SizeHistogram cost;       // of a sync
  SizeHistogram deviation;  // of a rank's work from its sync's median
  // Work against the batch's samples, both less their step's mean over the ranks.
  double samples_square = 0, samples_work = 0;
  double fitted_cost_ns = 0,
         unexplained_cost_ns = 0;  // with the fit known: the cost, and the cost less the fit
  std::vector<std::pair<int32_t, double>> late;  // rank, cost where it was last: the largest
  std::map<std::string, double> phases;          // of the late ranks, more than the others
  std::vector<Spike> spikes;                     // costliest first
  bool operator==(const Leftover&) const = default;
};

struct Comparison {
  static constexpr size_t kMaxEpisodes = 256, kMaxSyncBlocks = 512;
  int32_t attempt = 0;        // of the job; a restart begins a new numbering
  int64_t last_step = -1;     // newest step looked at
  int64_t settled_step = -1;  // newest one that no episode can change any more
  int64_t steps = 0;  // judged: all members of their sync points seen, none of them unsteady
  int32_t ranks = 0;  // in the newest judged step
  int64_t first_judged_step = -1, last_judged_step = -1;
  double time_ns = 0, cost_ns = 0;
  std::vector<SyncBlock> blocks;
  int64_t block_steps = 1;  // judged steps a full block holds
  std::vector<Episode> episodes;
  Leftover settled;   // without the newest steps, of which an episode may still begin
  Leftover leftover;  // with them
  bool operator==(const Comparison&) const = default;
};

// One line a value, independent of the locale; doubles come back exactly. Text of another version, cut or garbled:
// nullopt.
std::string to_text(const Comparison& comparison);
std::optional<Comparison> comparison_from_text(std::string_view text);

}  // namespace stepscope
