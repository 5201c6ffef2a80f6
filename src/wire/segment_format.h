// The bytes of a segment: the one file of shared memory that a process of the run writes. Both
// sides include this header and nothing else about the layout; docs/reference/segment.md explains
// it in prose.
//
//   offset 0      Identity    written once before the file is named, then only `late` fields
//          1024   WriterLine  head, written, dropped                    (writer only)
//          1088   NowLine     what the step thread does at this moment  (writer only)
//          1152   ReaderLine  tail and its complement, heartbeat        (agent only)
//          1216   ControlLine the one word that points back             (agent only)
//          2048   NameTable   64 user phase names, append-only          (writer only)
//          8192   Record[capacity]
//
// A record i lives in slot i % capacity. Its life:
//   free         seq != i + 1
//   claimed      head > i, seq != i + 1   the writer fills it; one that dies here leaves a hole
//   published    seq == i + 1             one release store; the reader may copy it
//   released     tail > i                 the slot belongs to the writer again
// When head - tail == capacity the writer drops the record and counts it. It never waits.
//
// The order of records is the order in which things were known, not the order in which they
// happened: a span is written at its end, and a kStep record may close a step whose end lies before
// spans that already stand in the ring (an optimizer's entry, a validation that turns out to have
// been training, up to 16 steps at once when a loop without fetches is recognised). Who reads must
// therefore give spans to steps by time and cut them at t1 of kStep.
//
// Laws (design): after start-up the recorder does not allocate, lock, make a system call, log,
// throw or wait; one store publishes a record; no lock in shared memory; the reader treats every
// byte as hostile; a forked child is silent until it makes a segment of its own; durations are
// CLOCK_MONOTONIC; unmeasured, zero, not applicable, skipped and failed are different values.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "model/facts.h"

namespace stepscope::wire {

inline constexpr uint64_t kMagic = 0x31474553'50455453;  // "STEPSEG1"
inline constexpr uint32_t kVersion = 1;
inline constexpr size_t kRingOffset = 8192;
inline constexpr size_t kNameTableOffset = 2048;
inline constexpr size_t kRankSegmentBytes = 256 * 1024;
inline constexpr size_t kWorkerSegmentBytes = 64 * 1024;

enum class Role : uint8_t { kUnknown, kRank, kWorker };

struct Identity {
  uint64_t magic;
  uint32_t version;
  uint32_t record_bytes;  // sizeof(Record)
  uint64_t segment_bytes;
  uint64_t capacity;        // records in the ring
  uint64_t nonce;           // differs between two segments, whatever their pid
  int64_t pid_start_ticks;  // field 22 of /proc/<pid>/stat; with pid it names a process for ever
  int64_t mono_ns;          // the clock pair: the same instant on both clocks
  int64_t wall_ns;
  int32_t pid;
  Role role;
  uint8_t reserved0[3];
  // late: may change until the first record, and again when torch.distributed starts
  // -1: not known
  std::atomic<int32_t> rank, local_rank, world_size, local_world_size, node_rank, attempt;
  std::atomic<uint32_t> facts;  // FactBits
  uint8_t reserved1[4];
  char node[64];  // host name; never used to tell processes apart
  char run_id[128];
  char python_version[32];
  char torch_version[32];
  char executable[256];
  uint8_t reserved2[408];
};
static_assert(sizeof(Identity) == 1024);

// Identity::facts: what the reader must know to judge, and to say what was not measured.
using stepscope::FactBits;
using enum stepscope::FactBits;

struct alignas(64) WriterLine {
  std::atomic<uint64_t> head;        // next record index to claim
  std::atomic<uint64_t> dropped;     // records that found no room
  std::atomic<uint64_t> cost_ns;     // our own time inside calls that were sampled
  std::atomic<uint64_t> cost_calls;  // how many calls that were: one in kCostEvery
  // the newest tail that a writer has looked at; spares it the reader's line
  std::atomic<uint64_t> known_tail;
  uint8_t reserved[24];
};
// Prime, so that a loop with a regular number of calls a step is sampled all round. Cost of all
// calls so far = cost_ns * kCostEvery.
inline constexpr uint32_t kCostEvery = 61;

struct alignas(64) NowLine {
  // phase in the top byte, step below: one store, so that a reader never sees half.
  std::atomic<uint64_t> phase_and_step;
  std::atomic<int64_t> since_ns;
  uint8_t reserved[48];
};

struct alignas(64) ReaderLine {
  std::atomic<uint64_t> tail;  // records before this index were drained and stored
  // ~tail: the agent writes with pwrite, which no law makes whole for 8 bytes
  std::atomic<uint64_t> tail_check;
  std::atomic<int64_t> heartbeat_ns;
  uint8_t reserved[40];
};

enum class Control : uint32_t { kOn = 0, kOff = 1, kDeepen = 2 };
struct alignas(64) ControlLine {
  std::atomic<uint32_t> word;  // Control
  std::atomic<uint32_t> profile_steps;
  uint8_t reserved[56];
};

// A kSync is a span of phase sync too.
enum class RecordKind : uint8_t {
  kNone = 0,
  // phase from t0 to t1, flags: SpanFlags. a = samples of a fetched batch, else kUnmeasured
  kSpan = 1,
  // step `step` was closed: t0 its begin, t1 its end. a = samples or kUnmeasured, b = StepCounts
  kStep = 2,
  // a sync point: t0 = ready, t1 = leave. a = group id, b = number in the group, or kUnmeasured
  kSync = 3,
  // something happened at t0: the phase field holds the MarkCode
  kMark = 4,
};

enum SpanFlags : uint8_t {
  kSpanRaised = 1u << 0,       // left by an exception
  kSpanExhausted = 1u << 1,    // input: StopIteration, no batch
  kSpanEpochStart = 1u << 2,   // input: loader.__iter__, or the first fetch after it
  kSpanNotTraining = 1u << 3,  // input: a loader that does not feed training
  kSpanEvalForward = 1u << 4,  // forward with gradients off
};

enum StepFlags : uint8_t {
  kStepFailed = 1u << 0,  // an exception left forward, backward, optimizer or the trace_step block
  kStepExplicit = 1u << 1,
  kStepProfiled = 1u << 2,  // a torch.profiler window was open
  kStepCompiled = 1u << 3,  // torch.compile compiled something in it
  kStepPaused = 1u << 4,    // recording was off for a part of it
};

enum class MarkCode : uint8_t {
  kOptimizerSkipped = 1,  // GradScaler found inf or nan
  kReady = 2,             // all local work of a backward is done
  kZeroGrad = 3,
  // The first step begins; again when what was fetched before turned out to be a peek. With
  // trace_step at each entry.
  kStepBegin = 4,
  // t0 of a validation under way, for a process that dies inside it. Its span, written at its end,
  // or a later backward span (it was training after all) makes this void.
  kValidationBegin = 5,
};

inline constexpr uint64_t kUnmeasured = ~uint64_t{0};
inline constexpr uint8_t kHostClock = 0xff;  // Record::device for host times

struct Record {
  std::atomic<uint64_t> seq;  // index + 1 when published
  int64_t t0_ns;
  int64_t t1_ns;
  uint32_t step;
  RecordKind kind;
  uint8_t phase;  // Phase, user phase number, or MarkCode
  uint8_t flags;
  uint8_t device;  // kHostClock, or the device whose clock t0 and t1 are of
  uint64_t a;
  uint64_t b;
};
static_assert(sizeof(Record) == 48);

// StepCounts in Record::b of a kStep record, 16 bits each, saturating.
struct StepCounts {
  uint16_t fetches, backwards, optimizer_steps, skipped_steps;
};
inline constexpr uint64_t pack(StepCounts c) {
  return uint64_t{c.fetches} | uint64_t{c.backwards} << 16 | uint64_t{c.optimizer_steps} << 32 |
         uint64_t{c.skipped_steps} << 48;
}
inline constexpr StepCounts unpack_counts(uint64_t v) {
  return {static_cast<uint16_t>(v), static_cast<uint16_t>(v >> 16), static_cast<uint16_t>(v >> 32),
          static_cast<uint16_t>(v >> 48)};
}

inline constexpr size_t kNameBytes = 64;
struct NameTable {
  std::atomic<uint32_t> count;  // published after the bytes of the name
  uint8_t reserved[60];
  char names[64][kNameBytes];
};

struct SegmentHead {
  Identity identity;
  WriterLine writer;
  NowLine now;
  ReaderLine reader;
  ControlLine control;
  uint8_t reserved[kNameTableOffset - 1024 - 4 * 64];
  NameTable names;
};
static_assert(offsetof(SegmentHead, writer) == 1024);
static_assert(offsetof(SegmentHead, now) == 1088);
static_assert(offsetof(SegmentHead, reader) == 1152);
static_assert(offsetof(SegmentHead, control) == 1216);
static_assert(offsetof(SegmentHead, names) == kNameTableOffset);
static_assert(sizeof(SegmentHead) <= kRingOffset);
static_assert(std::atomic<uint64_t>::is_always_lock_free &&
              std::atomic<int32_t>::is_always_lock_free);

inline constexpr uint64_t capacity_for(size_t segment_bytes) {
  return segment_bytes <= kRingOffset ? 0 : (segment_bytes - kRingOffset) / sizeof(Record);
}

}  // namespace stepscope::wire
