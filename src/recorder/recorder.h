// The recorder: lives in the training process and writes what happens on the step thread, as it
// happens, into the process's segment. It knows nothing of steps, phases or spans: what the events
// mean is decided by the agent (agent::Timeline). That keeps it small enough to be cheap when the
// model has thrown all of it out of the caches since the last event, which is the usual case.
//
// Laws (see wire/segment_format.h): after open() nothing here allocates, locks, makes a system
// call, logs, throws or waits. When it cannot write it drops and counts.
//
// Thread safety: events come from the step thread. The step thread is the first thread that makes
// an event, until a backward (or enter_step) is seen on another: that one is it then, for good.
// Calls from other threads return at once, except ready(), which an autograd thread may make.
// Lifetime: one per process, never destroyed; after fork() the child's copy is silent
// (pthread_atfork) until it opens a segment of its own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "model/phase.h"
#include "ring/writer.h"
#include "wire/segment_format.h"

namespace stepscope::recorder {

struct OpenOptions {
  std::string folder;  // the run's segment folder, exists, 0700
  wire::Role role = wire::Role::kRank;
  size_t segment_bytes = wire::kRankSegmentBytes;
  double shm_share = 0.05;  // no segment when all together would pass this share of the free space
  int rank = -1, local_rank = -1, world_size = 1, local_world_size = 1, node_rank = -1, attempt = 0;
  std::string run_id, python_version, torch_version, executable;
};

ring::SegmentOptions segment_of(const OpenOptions& options);

class alignas(64) Recorder {
 public:
  static Recorder& instance() { return instance_; }

  // Once. "No room" and the like are errors, which the caller says once.
  Status open(const OpenOptions& options);
  void close();  // sets kFactClosed: every event is published; the file stays
  bool recording() const { return state_.load(std::memory_order_relaxed) != State::kOff; }
  bool is_open() const { return open_.load(std::memory_order_relaxed); }
  void pause();
  void resume();
  void set_fact(uint32_t fact);
  // The number of a process group in this segment, for wire::pack_sync; 0 when there is no room.
  // Allocates nothing; one thread at a time.
  uint32_t group(uint64_t id, uint32_t members);
  // When torch.distributed starts.
  void set_ranks(int rank, int local_rank, int world_size, int local_world_size);

  // loader: a number that stays the same for one loader object and is never used for another
  void iter_begin(uint64_t loader, bool grad_on) {  // DataLoader.__iter__: workers start
    event(Code::kIterBegin, grad(grad_on), loader);
  }
  void iter_end(bool raised) { event(Code::kIterEnd, ending(raised)); }
  void fetch_begin(uint64_t loader, bool grad_on) {
    event(Code::kFetchBegin, grad(grad_on), loader);
  }
  // samples: wire::kUnmeasured when not known
  void fetch_end(uint64_t samples) { event(Code::kFetchEnd, 0, samples); }
  void fetch_failed(bool exhausted) {  // no batch: the loader's end, or an exception
    event(Code::kFetchEnd, exhausted ? wire::kExhausted : wire::kRaised, wire::kUnmeasured);
  }

  // outermost module with trainable parameters
  void forward_begin(bool grad_on, bool training_mode) {
    event(Code::kForwardBegin,
          static_cast<uint8_t>(grad(grad_on) | (training_mode ? wire::kTrainingMode : 0)));
  }
  void forward_end(bool raised) { event(Code::kForwardEnd, ending(raised)); }
  // reduced: it will end with a wait for other ranks
  // sync: the sync point that it will end with, or 0
  void backward_begin(bool reduced, uint64_t sync = 0);
  // ns: of forward computed again since backward_begin
  void recomputed(int64_t ns) { event(Code::kRecomputed, 0, static_cast<uint64_t>(ns)); }
  void ready();  // all local work of the backward in progress is done
  // Returns whether ready() was called within it; known only of one that reduces.
  bool backward_end(bool raised, bool reduced);
  void optimizer_begin(uint64_t optimizer) { event(Code::kOptimizerBegin, 0, optimizer); }
  void optimizer_end(uint64_t optimizer) { event(Code::kOptimizerEnd, 0, optimizer); }
  void optimizer_skipped() { event(Code::kOptimizerSkipped); }  // GradScaler did not call step
  void zero_grad() { event(Code::kZeroGrad); }
  void eval_called() { event(Code::kEvalCalled); }  // of a known root
  void train_called() { event(Code::kTrainCalled); }

  // A blocking wait for other ranks (collective, Work.wait, buffer broadcast). sync: which sync point
  // it is, or 0; together: all members of its group leave it at once.
  void sync_begin(uint64_t sync, bool together) {
    event(Code::kSyncBegin, together ? wire::kTogether : 0, sync);
  }
  void sync_end() { event(Code::kSyncEnd); }

  // Any other phase, and user phases: kH2d, kCheckpoint, kCompile, kGc, kProfiler, kInput, ... or
  // name()'s number.
  void begin(uint8_t phase) { event(Code::kPhaseBegin, 0, 0, phase); }
  void end(uint8_t phase, bool raised = false) { event(Code::kPhaseEnd, ending(raised), 0, phase); }
  void cancel(uint8_t phase) { event(Code::kPhaseCancel, 0, 0, phase); }  // begin() was none
  // A built-in name gives that phase's number. Allocates nothing.
  uint8_t name(const char* user_phase);
  void profiler_window(bool open) { event(Code::kProfilerWindow, open ? wire::kOpen : 0); }

  void enter_step();  // trace_step
  void exit_step(bool raised) { event(Code::kStepExit, ending(raised)); }
  // of the step in progress, besides those of fetched batches
  void add_samples(uint64_t samples) { event(Code::kSamples, 0, samples); }

 private:
  using Code = wire::EventCode;
  enum class State : uint8_t {
    kOff,      // closed, never opened, or paused
    kOn,       // an event is owed to the step thread alone
    kResumed,  // on again; what was open may have ended unseen, which the next event's thread says
    kMuted,    // the control word says off; it is looked at now and then
  };
  static constexpr int64_t kOutsideBackward = -1, kNotReady = 0;

  friend class RecorderTest;  // makes recorders of its own
  constexpr Recorder() = default;

  static constexpr uint8_t grad(bool on) { return on ? wire::kGradOn : 0; }
  static constexpr uint8_t ending(bool raised) { return raised ? wire::kRaised : 0; }
  void event(Code code, uint8_t flags = 0, uint64_t a = 0, uint8_t phase = 0) {
    event(wire::pack(code, phase, flags), a);
  }
  void event(uint32_t what, uint64_t a);  // one function for all: it is in the cache more often
  static constexpr size_t kHotLine = 64;
  void event_now_and_then(uint32_t what, uint64_t a);
  bool take_over(uint32_t what);
  bool is_owner() const { return owner_.load(std::memory_order_relaxed) == thread_mark(); }
  static const void* thread_mark();
  void start_over(const ring::Writer& writer);
  static void silence_child();

  static Recorder instance_;

  static void check_layout();

  std::atomic<const void*> step_thread_{nullptr};
  std::atomic<int64_t> ready_ns_{kOutsideBackward};  // of the backward in progress
  int64_t clock_cost_ns_ = 0;                        // of one look at the clock
  std::atomic<uint32_t> facts_{0}, names_{0};
  std::atomic<bool> open_{false}, naming_{false};
  uint8_t reserved_[6] = {};
  ring::Writer writer_;
  // From the writer's hot part on, one cache line: all that an event touches besides the ring.
  std::atomic<const void*> owner_{nullptr};  // who may write at once; null: first look why not
  ClockFunction clock_ = clock_gettime;
  uint32_t until_sample_ = wire::kCostEvery;
  std::atomic<State> state_{State::kOff};
  std::atomic<bool> bound_{false};  // the step thread is it for good
};

// A word that no other living thread has: cheaper than a thread id.
inline const void* Recorder::thread_mark() {
#if defined(__has_builtin) && __has_builtin(__builtin_thread_pointer)
  return __builtin_thread_pointer();
#else
  static thread_local char mark;
  return &mark;
#endif
}

inline void Recorder::backward_begin(bool reduced, uint64_t sync) {
  event(Code::kBackwardBegin, 0, sync);
  if (!is_owner()) return;  // another thread's: not the one that ready() is asked of
  bound_.store(true, std::memory_order_relaxed);
  if (reduced) ready_ns_.store(kNotReady, std::memory_order_relaxed);
}

inline void Recorder::ready() {
  if (ready_ns_.load(std::memory_order_relaxed) == kOutsideBackward) return;
  const int64_t now_ns = monotonic_ns();
  ready_ns_.store(now_ns, std::memory_order_relaxed);
  if (writer_) writer_.head().writer.ready_ns.store(now_ns, std::memory_order_relaxed);
}

inline bool Recorder::backward_end(bool raised, bool reduced) {
  if (!reduced || !is_owner()) {
    event(Code::kBackwardEnd, ending(raised));
    return false;
  }
  const int64_t ready_ns = ready_ns_.exchange(kOutsideBackward, std::memory_order_relaxed);
  event(Code::kBackwardEnd, static_cast<uint8_t>(ending(raised) | wire::kReduced),
        ready_ns > 0 ? static_cast<uint64_t>(ready_ns) : 0);
  return ready_ns > 0;
}

inline void Recorder::enter_step() {
  if (is_owner()) bound_.store(true, std::memory_order_relaxed);
  event(Code::kStepEnter);
}

}  // namespace stepscope::recorder
