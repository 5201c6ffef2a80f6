// The recorder: lives in the training process, writes spans and steps into the process's segment.
//
// Laws (see wire/segment_format.h): after open() nothing here allocates, locks, makes a system call, logs, throws
// or waits. When it cannot write it drops and counts.
//
// Thread safety: spans come from the step thread. The step thread is the first thread that makes an event, until a
// backward (or enter_step) is seen on another: that one is it then, for good. Calls from other threads return at once,
// except ready(), which an autograd thread may make. The ring itself takes many writers.
// Lifetime: one per process, never destroyed; after fork() the child's copy is silent (pthread_atfork) until it opens
// a segment of its own.
//
// What a step is (design, "A step") is decided here by StepClock, because only here the order of events is certain;
// where the time of a step went is decided by the agent's fold, from the spans.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/phase.h"
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

enum class FetchEnd : uint8_t { kBatch, kExhausted, kRaised };

class Recorder {
 public:
  static Recorder& instance();

  Status open(const OpenOptions& options);  // once; "no room" and the like are errors, said once by the caller
  void close();                             // publishes what is pending; the file stays for the agent
  bool recording() const { return on_.load(std::memory_order_relaxed); }
  bool is_open() const;
  void pause();
  void resume();
  void set_fact(uint32_t fact);
  void set_ranks(int rank, int local_rank, int world_size, int local_world_size);  // when torch.distributed starts
  uint32_t step() const;

  // loader: a number that stays the same for one loader object and is never used for another
  void iter_begin(uint64_t loader, bool grad_on);   // DataLoader.__iter__: workers start
  void iter_end(bool raised);
  void fetch_begin(uint64_t loader, bool grad_on);
  void fetch_end(FetchEnd how, uint64_t samples);   // samples: wire::kUnmeasured when not known

  // outermost module with trainable parameters
  void forward_begin(bool grad_on, bool training_mode);
  void forward_end(bool raised);
  void backward_begin();
  void ready();                                     // all local work of the backward in progress is done
  void backward_end(bool raised, bool reduced);     // reduced: it ended with a wait for other ranks
  void optimizer_begin(uint64_t optimizer);
  void optimizer_end(uint64_t optimizer);
  void optimizer_skipped();                         // GradScaler did not call step
  void zero_grad();
  void eval_called();                               // of a known root
  void train_called();

  // A blocking wait for other ranks (collective, Work.wait, buffer broadcast). group: a number for the process group.
  void sync_begin(uint64_t group);
  void sync_end();

  // Any other phase, and user phases: kH2d, kCheckpoint, kCompile, kGc, kProfiler, kInput, ... or name()'s number.
  void begin(uint8_t phase);
  void end(uint8_t phase, bool raised = false);
  uint8_t name(const char* user_phase);             // a built-in name gives that phase's number; allocates nothing
  void profiler_window(bool open);                  // steps inside are flagged

  void enter_step();                                // trace_step
  void exit_step(bool raised);

 private:
  Recorder() = default;
  std::atomic<bool> on_{false};
  // ...
};

}  // namespace stepscope::recorder
