// The bytes of a segment: the one file of shared memory that a process of the run writes. Both
// sides include this header and nothing else about the layout; docs/reference/segment.md explains
// it in prose.
//
//   offset 0      Identity    written once before the file is named, then only `late` fields
//          1024   WriterLine  what was lost, what our calls cost        (writer only)
//          1088   ReaderLine  tail and its complement, heartbeat        (agent only)
//          1152   ControlLine the one word that points back             (agent only)
//          1216   GroupTable  32 process groups, append-only            (writer only)
//          2048   NameTable   64 user phase names, append-only          (writer only)
//          8192   Event[capacity]
//
// Event i lies in slot i % capacity and is published by one release store of seq = i + 1: the reader
// reads on while that number is there, and needs no other word of the writer. A process that dies
// while it fills a slot leaves the number of the lap before. Events before `tail` belong to the
// writer again; when it has written capacity events more than that, it drops, counts, and says in
// the next event that fits how many are missing before it. It never waits.
//
// Events are what happened on the step thread, in that order: a begin or an end, never a span. What
// they mean (spans, steps, validation, what the thread does now) is the agent's to say
// (agent::Timeline), so that the training process keeps no state of it and touches one cache line
// of the ring for two events.
//
// Laws (design): after start-up the recorder does not allocate, lock, make a system call, log,
// throw or wait; one store publishes an event; no lock in shared memory; the reader treats every
// byte as hostile; a forked child is silent until it makes a segment of its own; durations are
// CLOCK_MONOTONIC; unmeasured, zero, not applicable, skipped and failed are different values.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "model/facts.h"

namespace stepscope::wire {

inline constexpr uint64_t kMagic = 0x31474553'50455453;  // "STEPSEG1"
inline constexpr uint32_t kVersion = 4;
inline constexpr size_t kRingOffset = 8192;
inline constexpr size_t kGroupTableOffset = 1216, kNameTableOffset = 2048;
inline constexpr size_t kRankSegmentBytes = 256 * 1024;
inline constexpr size_t kWorkerSegmentBytes = 64 * 1024;

// kWorker: what it holds is of loading data alone.
enum class Role : uint8_t { kUnknown, kRank, kWorker };

struct Identity {
  uint64_t magic;
  uint32_t version;
  uint32_t event_bytes;  // sizeof(Event)
  uint64_t segment_bytes;
  uint64_t capacity;        // events in the ring
  uint64_t nonce;           // differs between two segments, whatever their pid
  int64_t pid_start_ticks;  // field 22 of /proc/<pid>/stat; with pid it names a process for ever
  int64_t mono_ns;          // the clock pair: the same instant on both clocks
  int64_t wall_ns;
  int32_t pid;
  Role role;
  uint8_t reserved0[3];
  // late: may change until the first event, and again when torch.distributed starts
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
  std::atomic<uint64_t> dropped;     // events that found no room
  std::atomic<uint64_t> cost_ns;     // our own time inside calls that were sampled
  std::atomic<uint64_t> cost_calls;  // how many calls that were: one in kCostEvery
  // When the newest backward that reduces had done its local work and began to wait, or 0. No event:
  // it may be another thread that tells.
  std::atomic<int64_t> ready_ns;
  uint8_t reserved[32];
};
// Prime, so that a loop with a regular number of calls a step is sampled all round. Cost of all
// calls so far = cost_ns * kCostEvery. The control word is read as often.
inline constexpr uint32_t kCostEvery = 61;

struct alignas(64) ReaderLine {
  std::atomic<uint64_t> tail;  // events before this index were drained and stored
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

// What happened. `a` and flags as said; without a word both are 0.
enum class EventCode : uint8_t {
  kNone = 0,
  kIterBegin = 1,   // DataLoader.__iter__. a = loader; kGradOn
  kIterEnd = 2,     // kRaised
  kFetchBegin = 3,  // a = loader; kGradOn
  kFetchEnd = 4,    // a = samples of the batch, or kUnmeasured; kExhausted or kRaised: no batch
  // outermost module with trainable parameters. kGradOn, kTrainingMode
  kForwardBegin = 5,
  kForwardEnd = 6,     // kRaised
  kBackwardBegin = 7,  // a = the sync point that it will end with (pack_sync), or 0
  // a = when all local work was done, or 0; kReduced: it ended with a wait for other ranks; kRaised
  kBackwardEnd = 8,
  kOptimizerBegin = 9,     // a = optimizer
  kOptimizerEnd = 10,      // a = optimizer. One that never comes is one that raised
  kOptimizerSkipped = 11,  // GradScaler found inf or nan
  kZeroGrad = 12,
  kEvalCalled = 13,  // of a known root
  kTrainCalled = 14,
  kSyncBegin = 15,  // a blocking wait for other ranks. a = which one (pack_sync), or 0; kTogether
  kSyncEnd = 16,
  kPhaseBegin = 17,      // any other phase, and the user's: `phase`
  kPhaseEnd = 18,        // kRaised
  kPhaseCancel = 19,     // its begin turned out to be none
  kProfilerWindow = 20,  // of torch.profiler: kOpen, or closed
  kStepEnter = 21,       // trace_step
  kStepExit = 22,        // kRaised
  kSamples = 23,         // a = samples of the step in progress, besides those of fetched batches
  kResumed = 24,         // whatever was open may have ended unseen. a = ResumedWhy
  // a = ns of forward computed again inside the backward that ends next (activation checkpointing)
  kRecomputed = 25,
  // Of loading data, in segments of role kWorker alone: a worker's, and a second one of a training
  // process with loaders. They add up what happened since the last kLoaderBatches, so that a batch
  // costs a handful of events however many samples it has.
  kLoader = 26,         // a loader's iterator is made. phase = LoaderFlags; a = pack_loader
  kLoaderWorker = 27,   // and this is one of its workers. a = pid << 32 | loader << 16 | number
  kLoaderStarted = 28,  // and so long that took. phase = loader; a = ns
  kLoaderPart = 29,     // phase = LoaderPart, or a transform's number in the names; a = ns or count
  // closes the parts before it. phase = loader (training process), a = batches << 32 | samples;
  // kDetailed: of all of them the parts were looked at
  kLoaderBatches = 30,
  // the training process took a batch over. phase = loader; a = pack_taken; kGradOn, kReady
  kLoaderTaken = 31,
  kLoaderEpoch = 32,  // an iteration of it begins. phase = loader
  kLoaderName = 33,   // its dataset's class. phase = number in the names; a = loader
  kLast = kLoaderName,
};

enum ResumedWhy : uint64_t { kAfterPause = 0, kOtherThread = 1 };

enum EventFlags : uint8_t {
  kGradOn = 1u << 0,
  kTrainingMode = 1u << 1,
  kRaised = 1u << 2,  // left by an exception
  kExhausted = 1u << 3,
  kReduced = 1u << 4,
  kOpen = 1u << 5,
  kTogether = 1u << 6,  // all members of the group leave this wait at once
  kDetailed = 1u << 1,  // of kLoaderBatches
  kReady = 1u << 5,     // of kLoaderTaken: the batch was there when it was asked for
};
inline constexpr uint8_t kEveryEventFlag = (1u << 7) - 1;

// A sync point: its group's number in the table, from 1, and its own among the group's since the
// process began. Told by the writer, so that ranks can be joined whatever was dropped.
inline constexpr uint64_t pack_sync(uint32_t group, uint32_t index) {
  return uint64_t{group} << 32 | index;
}

// kLoader: batch_size 24 bits, prefetch_factor 16, workers 16, the loader's number 8
inline constexpr uint64_t pack_loader(uint32_t loader, uint32_t workers, uint32_t prefetch_factor,
                                      uint32_t batch_size) {
  return uint64_t{batch_size & 0xffffff} << 40 | uint64_t{prefetch_factor & 0xffff} << 24 |
         uint64_t{workers & 0xffff} << 8 | (loader & 0xff);
}
// kLoaderTaken: how long that took, which worker it is from (0xffff: not known), how many lay ready
inline constexpr uint64_t pack_taken(uint64_t ns, uint32_t worker, uint32_t depth) {
  constexpr uint64_t kMostNs = (uint64_t{1} << 40) - 1;
  return (ns < kMostNs ? ns : kMostNs) << 24 | uint64_t{worker & 0xffff} << 8 |
         (depth < 0xff ? depth : 0xff);
}

inline constexpr uint64_t kUnmeasured = ~uint64_t{0};
inline constexpr uint8_t kHostClock = 0xff;  // Event::device for host times

struct Event {
  std::atomic<uint64_t> seq;  // index + 1 when published
  std::atomic<int64_t> t_ns;
  std::atomic<uint64_t> a;
  // code, phase, flags and device in its bytes, from the lowest up (pack())
  std::atomic<uint32_t> what;
  std::atomic<uint32_t> missing;  // events dropped right before this one, saturating
};
static_assert(sizeof(Event) == 32);

inline constexpr uint32_t pack(EventCode code, uint8_t phase = 0, uint8_t flags = 0,
                               uint8_t device = kHostClock) {
  return static_cast<uint32_t>(code) | uint32_t{phase} << 8 | uint32_t{flags} << 16 |
         uint32_t{device} << 24;
}

inline constexpr uint32_t kMaxGroups = 32;
struct GroupTable {
  std::atomic<uint32_t> count;  // published after the entry
  uint8_t reserved[12];
  struct Group {
    std::atomic<uint64_t> id;  // the same on every member, and no other group's in this run
    std::atomic<uint32_t> members;
    uint8_t reserved[4];
  } groups[kMaxGroups];
};

inline constexpr size_t kNameBytes = 64;
struct NameTable {
  std::atomic<uint32_t> count;  // published after the bytes of the name
  uint8_t reserved[60];
  char names[64][kNameBytes];
};

struct SegmentHead {
  Identity identity;
  WriterLine writer;
  ReaderLine reader;
  ControlLine control;
  GroupTable groups;
  uint8_t reserved[kNameTableOffset - kGroupTableOffset - sizeof(GroupTable)];
  NameTable names;
};
static_assert(offsetof(SegmentHead, writer) == 1024);
static_assert(offsetof(SegmentHead, reader) == 1088);
static_assert(offsetof(SegmentHead, control) == 1152);
static_assert(offsetof(SegmentHead, groups) == kGroupTableOffset);
static_assert(offsetof(SegmentHead, names) == kNameTableOffset);
static_assert(sizeof(SegmentHead) <= kRingOffset);
static_assert(std::atomic<uint64_t>::is_always_lock_free &&
              std::atomic<int32_t>::is_always_lock_free);

inline constexpr uint64_t capacity_for(size_t segment_bytes) {
  return segment_bytes <= kRingOffset ? 0 : (segment_bytes - kRingOffset) / sizeof(Event);
}

}  // namespace stepscope::wire
