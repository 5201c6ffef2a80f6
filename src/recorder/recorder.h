// The recorder: lives in the training process, writes spans and steps into the process's segment.
//
// Laws (see wire/segment_format.h): after open() nothing here allocates, locks, makes a system
// call, logs, throws or waits. When it cannot write it drops and counts.
//
// Thread safety: spans come from the step thread. The step thread is the first thread that makes an
// event, until a backward (or enter_step) is seen on another: that one is it then, for good. Calls
// from other threads return at once, except ready(), which an autograd thread may make. The ring
// itself takes many writers.
// Lifetime: one per process, never destroyed; after fork() the child's copy is silent
// (pthread_atfork) until it opens a segment of its own.
//
// What a step is (design, "A step") is decided here by StepClock, because only here the order of
// events is certain; where the time of a step went is decided by the agent's fold, from the spans.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/phase.h"
#include "recorder/phase_stack.h"
#include "recorder/step_clock.h"
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

class Recorder {
 public:
  static Recorder& instance() { return instance_; }

  // Once. "No room" and the like are errors, which the caller says once.
  Status open(const OpenOptions& options);
  void close();  // publishes what is pending, then sets kFactClosed; the file stays
  bool recording() const { return state_.load(std::memory_order_relaxed) != State::kOff; }
  bool is_open() const { return open_.load(std::memory_order_relaxed); }
  void pause();
  void resume();
  void set_fact(uint32_t fact);
  // When torch.distributed starts.
  void set_ranks(int rank, int local_rank, int world_size, int local_world_size);
  uint32_t step() const;  // in progress, from 0; from any thread

  // loader: a number that stays the same for one loader object and is never used for another
  void iter_begin(uint64_t loader, bool grad_on);  // DataLoader.__iter__: workers start
  void iter_end(bool raised);
  void fetch_begin(uint64_t loader, bool grad_on);
  void fetch_end(FetchEnd how, uint64_t samples);  // samples: wire::kUnmeasured when not known

  // outermost module with trainable parameters
  void forward_begin(bool grad_on, bool training_mode);
  void forward_end(bool raised);
  void backward_begin();
  void ready();  // all local work of the backward in progress is done
  // reduced: it ended with a wait for other ranks. Returns whether ready() was called within it.
  bool backward_end(bool raised, bool reduced);
  void optimizer_begin(uint64_t optimizer);
  void optimizer_end(uint64_t optimizer);
  void optimizer_skipped();  // GradScaler did not call step
  void zero_grad();
  void eval_called();  // of a known root
  void train_called();

  // A blocking wait for other ranks (collective, Work.wait, buffer broadcast). group: a number for
  // the process group.
  void sync_begin(uint64_t group);
  void sync_end();

  // Any other phase, and user phases: kH2d, kCheckpoint, kCompile, kGc, kProfiler, kInput, ... or
  // name()'s number.
  void begin(uint8_t phase);
  void end(uint8_t phase, bool raised = false);
  void cancel(uint8_t phase);  // a begin() that turned out to be none: no record
  // A built-in name gives that phase's number. Allocates nothing.
  uint8_t name(const char* user_phase);
  void profiler_window(bool open);  // steps inside are flagged

  void enter_step();  // trace_step
  void exit_step(bool raised);
  // A trace_step inside another, which is ignored and warned about once.
  bool nested_step_seen() const { return clock_.nested_seen(); }
  void add_samples(uint64_t samples);  // of the step in progress, besides those of fetched batches

 private:
  // kResumed: the step thread has yet to forget what was open.
  enum class State : uint8_t { kOff, kOn, kResumed };
  class Call;                 // one public call: whose it is, when, and now and then what it costs
  friend class RecorderTest;  // makes recorders of its own
  constexpr Recorder() = default;

  bool mine(bool binds) {
    const void* self = thread_mark();
    if (step_thread_.load(std::memory_order_relaxed) != self) return bind(self, binds);
    if (binds) bound_.store(true, std::memory_order_relaxed);
    return true;
  }
  bool bind(const void* self, bool binds);
  static const void* thread_mark();
  void forget_open();
  void start_over(const ring::Writer& writer);

  void push(Phase phase, int64_t t_ns, uint8_t flags = 0) {
    push(static_cast<uint8_t>(phase), t_ns, flags);
  }
  void push(uint8_t phase, int64_t t_ns, uint8_t flags);
  void pop(Phase phase, int64_t t_ns, int flags, uint64_t a = wire::kUnmeasured) {
    pop(static_cast<uint8_t>(phase), t_ns, flags, a);
  }
  void pop(uint8_t phase, int64_t t_ns, int flags, uint64_t a);
  void show_now(int64_t t_ns);
  void write(const ring::RecordFields& fields) {
    if (!muted_) writer_.write(fields);
  }
  void mark(wire::MarkCode code, int64_t t_ns);
  void sync_point(uint64_t group, int64_t ready_ns, int64_t leave_ns);
  void settle() {
    if (clock_.decided().any) write_decided();
  }
  void write_decided();
  void read_control();
  static void silence_child();

  static Recorder instance_;

  std::atomic<State> state_{State::kOff};
  bool muted_ = false;  // the control word says off; steps are still counted
  uint32_t until_sample_ = 1;
  int64_t clock_cost_ns_ = 0;  // of one look at the clock
  std::atomic<const void*> step_thread_{nullptr};
  std::atomic<bool> bound_{false};  // for good
  std::atomic<bool> open_{false};
  std::atomic<uint32_t> facts_{0};
  std::atomic<uint32_t> names_{0};
  std::atomic<bool> naming_{false};
  std::atomic<bool> in_backward_{false};
  std::atomic<int64_t> ready_ns_{0};  // in the backward in progress; 0: not yet

  int64_t last_event_ns_ = 0;
  uint64_t started_loader_ = 0;  // its next fetch is the first of its epoch
  bool loader_started_ = false;
  int sync_depth_ = 0;
  uint64_t sync_group_ = 0;
  int64_t sync_begin_ns_ = 0;
  struct Group {
    uint64_t id = 0, points = 0;
  };
  // numbers of sync points; those of further groups are not numbered
  std::array<Group, 16> groups_{};
  size_t group_count_ = 0;

  ring::Writer writer_;
  PhaseStack stack_;
  StepClock clock_;
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

}  // namespace stepscope::recorder
