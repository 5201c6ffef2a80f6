// One finished step of one rank, folded from spans. Plain value; times in ns on the rank's own monotonic clock.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/phase.h"
#include "model/sync_point.h"

namespace stepscope {

// Where `other` lies, and three parts that views and rules name. All are inside the phase they belong to.
struct StepParts {
  int64_t loss_ns = 0;         // of forward: from the last root's return to backward's entry
  int64_t epoch_start_ns = 0;  // of input: loader start and the first fetch after it
  int64_t other_before_forward_ns = 0;   // of other
  int64_t other_after_backward_ns = 0;   // of other: backward done, optimizer not begun
  int64_t other_after_optimizer_ns = 0;  // of other
  int64_t other_between_steps_ns = 0;    // of other: trace_step only, outside the block
  int64_t recompute_ns = 0;  // of backward: forward computed again (activation checkpointing)
};

struct StepSample {
  static constexpr size_t kMaxSyncs = 128;  // in a step
  int32_t rank = 0;
  int64_t step = 0;  // from 0, numbered by the rank's own process
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  std::array<int64_t, kPhaseCount>
      phase_ns{};  // exclusive; with user_phase_ns they add up to end - begin
  std::vector<std::pair<std::string, int64_t>> user_phase_ns;  // exclusive too, by name
  StepParts parts;
  bool failed = false;
  bool profiled = false;
  bool compiled = false;
  bool paused = false;
  bool incomplete = false;  // records of it were dropped: counted, not averaged
  bool warmup = false;      // set by the history: not steady
  std::optional<int64_t> samples;
  int32_t fetches = 0;  // training batches
  int32_t backwards = 0;
  int32_t optimizer_steps = 0;
  int32_t skipped_steps = 0;
  std::vector<SyncPoint>
      syncs;  // that ended in it, in their order; none where there were more than kMaxSyncs

  int64_t total_ns() const { return end_ns - begin_ns; }
  bool steady() const { return !warmup && !failed && !profiled && !incomplete && !paused; }
  int64_t& operator[](Phase p) { return phase_ns[static_cast<size_t>(p)]; }
  int64_t operator[](Phase p) const { return phase_ns[static_cast<size_t>(p)]; }
};

// A rare event: counted by occurrence (diagnosis.md section 1), also outside any step.
enum class OccurrenceKind : uint8_t { kEpochStart, kCheckpoint, kValidation, kCompile, kProfiler };
inline constexpr int kOccurrenceKinds = 5;
struct Occurrence {
  int32_t rank = 0;
  OccurrenceKind kind{};
  int64_t step = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

}  // namespace stepscope
