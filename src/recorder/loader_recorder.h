// The recorder of loading data: in a DataLoader's worker, and beside the Recorder in a training
// process that makes or takes over batches. It adds up parts and writes them out once every
// kFlushNs or at the end, so that a batch of short samples costs next to nothing.
//
//   add(part, ns) ...  batch_done(samples)  ->  [kFlushNs passed]  kLoaderPart ... kLoaderBatches
//
// Laws (see wire/segment_format.h): after open() nothing here allocates, locks, logs, throws or
// waits; it makes no system call. When it cannot write it drops and counts.
//
// Thread safety: add() from any thread (the sums are atomic); all else from one thread at a time,
// which the caller sees to: the GIL, and the thread that fetches. Lifetime: one per process, never
// destroyed; after fork() the child's copy is silent until it opens a segment of its own.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/result.h"
#include "model/loader_part.h"
#include "model/phase.h"
#include "recorder/recorder.h"
#include "ring/writer.h"

namespace stepscope::recorder {

class LoaderRecorder {
 public:
  static constexpr int64_t kFlushNs = 20'000'000;
  // Samples shorter than this are looked at closely in one batch of kDetailEvery alone.
  static constexpr int64_t kShortSampleNs = 50'000;
  static constexpr uint32_t kDetailEvery = 16;

  static LoaderRecorder& instance() { return instance_; }

  Status open(OpenOptions options);  // a segment of role kWorker, whatever the options say
  void close();  // the file stays; what is not flushed is not in it. open() may follow
  bool is_open() const { return open_.load(std::memory_order_relaxed); }
  // The agent's control word; looked at once a flush.
  bool recording() const { return is_open() && !muted_.load(std::memory_order_relaxed); }

  // A number for a name, from kFirstUserPhase on; 0 when there is no room. Allocates nothing.
  uint8_t name(const char* text);

  void loader(uint32_t number, uint8_t flags, uint64_t packed, const char* dataset);
  void worker(uint32_t loader, uint32_t number, int32_t pid);
  void started(uint32_t loader, int64_t ns);
  void epoch(uint32_t loader);
  void taken(uint32_t loader, uint64_t packed, bool grad_on, bool ready);

  void add(LoaderPart part, int64_t value) { add(static_cast<uint8_t>(part), value); }
  void add(uint8_t part_or_name, int64_t value) {
    sums_[part_or_name].fetch_add(value, std::memory_order_relaxed);
  }
  bool detailed() const { return detailed_; }  // of the batch being made
  // A batch was made: of this loader (0 in a worker), in so long. Decides whether the next one is
  // looked at closely. now_ns: its end.
  void batch_done(uint32_t loader, uint32_t samples, int64_t fetch_ns, int64_t now_ns);
  void taken_over(uint32_t loader, int64_t now_ns);  // may flush the training process's parts
  bool flush_is_due(int64_t now_ns) const { return now_ns - flushed_ns_ >= kFlushNs; }
  void flush(int64_t now_ns);

 private:
  friend class LoaderRecorderTest;
  constexpr LoaderRecorder() = default;
  void event(wire::EventCode code, uint8_t phase, uint8_t flags, uint64_t a, int64_t t_ns) {
    writer_.write(wire::pack(code, phase, flags), a, t_ns);
  }
  void now(wire::EventCode code, uint8_t phase, uint8_t flags, uint64_t a);
  static void silence_child();

  static LoaderRecorder instance_;
  static constexpr size_t kNumbers = kFirstUserPhase + kMaxUserPhases;
  static_assert(kLoaderParts < kFirstUserPhase);

  ring::Writer writer_;
  std::array<std::atomic<int64_t>, kNumbers> sums_{};
  std::atomic<bool> open_{false}, muted_{false};
  bool detailed_ = true;
  uint32_t loader_ = 0;  // whose sums these are
  uint32_t batches_ = 0, samples_ = 0, detailed_batches_ = 0, until_detail_ = 0;
  int64_t sample_ns_ = 0;  // a moving mean
  int64_t longest_ns_ = 0, flushed_ns_ = 0;
  uint32_t names_ = 0;
};

}  // namespace stepscope::recorder
