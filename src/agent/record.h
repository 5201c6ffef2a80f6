// What the timeline tells the fold: spans, steps and the few instants that matter.
//
// Plain values, in the order of the events that made them known; one event can make several.
#pragma once

#include <cstdint>

#include "wire/segment_format.h"

namespace stepscope::agent {

// Times beyond this are no clock's; with it no sum or difference of two can overflow.
inline constexpr int64_t kMaxTimeNs = int64_t{1} << 62;
inline constexpr bool is_time(int64_t t_ns) { return 0 <= t_ns && t_ns <= kMaxTimeNs; }

enum class RecordKind : uint8_t {
  kSpan,              // phase from t0 to t1, flags: SpanFlags
  kStep,              // step `step` was closed: t0 its begin, t1 its end. flags: StepFlags
  kZeroGrad,          // at t0; likewise the others
  kOptimizerSkipped,  // GradScaler found inf or nan
  // The first step begins; again when what was fetched before turned out to be a peek. With
  // trace_step at each entry.
  kStepBegin,
  // This rank waited for others from t0 to t1, at sync point `sync`. flags: kSyncTogether
  kSync,
  // Forward was computed again for t1 - t0, somewhere inside the backward that ends next at t1
  kRecomputed,
};

enum SpanFlags : uint8_t {
  kSpanRaised = 1u << 0,       // left by an exception
  kSpanExhausted = 1u << 1,    // input: StopIteration, no batch
  kSpanEpochStart = 1u << 2,   // input: loader.__iter__, or the first fetch after it
  kSpanNotTraining = 1u << 3,  // input: a loader that does not feed training
  kSpanEvalForward = 1u << 4,  // forward with gradients off
};

enum SyncFlags : uint8_t { kSyncTogether = 1u << 0 };

enum StepFlags : uint8_t {
  kStepFailed = 1u << 0,  // an exception left forward, backward, optimizer or the trace_step block
  kStepExplicit = 1u << 1,
  kStepProfiled = 1u << 2,    // a torch.profiler window was open
  kStepCompiled = 1u << 3,    // torch.compile compiled something in it
  kStepPaused = 1u << 4,      // recording was off for a part of it
  kStepIncomplete = 1u << 5,  // events of it are missing
};

struct StepCounts {  // saturating
  int32_t fetches = 0, backwards = 0, optimizer_steps = 0, skipped_steps = 0;
};

struct Record {
  uint64_t index = 0;  // of the event that made it known
  int64_t t0_ns = 0, t1_ns = 0;
  uint32_t step = 0;
  RecordKind kind = RecordKind::kSpan;
  uint8_t phase = 0, flags = 0;
  uint64_t sync = 0;  // wire::pack_sync
  // of a step
  uint64_t samples = wire::kUnmeasured;
  StepCounts counts{};
};

}  // namespace stepscope::agent
