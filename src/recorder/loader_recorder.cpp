#include "recorder/loader_recorder.h"

#include <pthread.h>

#include <algorithm>
#include <cstring>

namespace stepscope::recorder {

constinit LoaderRecorder LoaderRecorder::instance_;

using Code = wire::EventCode;

Status LoaderRecorder::open(OpenOptions options) {
  if (is_open()) return Error{"this process already records its loading", ""};
  options.role = wire::Role::kWorker;
  const auto writer = ring::Writer::create(segment_of(options));
  if (!writer) return writer.error();
  if (this == &instance_) {
    static bool fork_handled = false;
    if (!fork_handled && pthread_atfork(nullptr, nullptr, silence_child) == 0) fork_handled = true;
  }
  writer_ = *writer;
  flushed_ns_ = monotonic_ns();
  open_.store(true, std::memory_order_release);
  return ok();
}

// The mapping stays: another thread may be about to write.
void LoaderRecorder::close() {
  open_.store(false, std::memory_order_relaxed);
  muted_.store(false, std::memory_order_relaxed);
  for (auto& sum : sums_) sum.store(0, std::memory_order_relaxed);
  detailed_ = true;
  loader_ = batches_ = samples_ = detailed_batches_ = until_detail_ = names_ = 0;
  sample_ns_ = longest_ns_ = 0;
}

// In a forked child: all of it is of the parent.
void LoaderRecorder::silence_child() {
  instance_.close();
  instance_.writer_ = ring::Writer{};
}

uint8_t LoaderRecorder::name(const char* text) {
  if (!is_open()) return 0;
  wire::NameTable& table = writer_.head().names;
  const size_t length = strnlen(text, wire::kNameBytes - 1);
  for (uint32_t i = 0; i < names_; ++i)
    if (std::strncmp(table.names[i], text, length) == 0 && table.names[i][length] == '\0')
      return static_cast<uint8_t>(kFirstUserPhase + i);
  if (names_ >= kMaxUserPhases) return 0;
  std::memcpy(table.names[names_], text, length);  // the rest is 0 since the segment was made
  table.count.store(++names_, std::memory_order_release);
  return static_cast<uint8_t>(kFirstUserPhase + names_ - 1);
}

void LoaderRecorder::now(Code code, uint8_t phase, uint8_t flags, uint64_t a) {
  if (recording()) event(code, phase, flags, a, monotonic_ns());
}

void LoaderRecorder::loader(uint32_t number, uint8_t flags, uint64_t packed, const char* dataset) {
  now(Code::kLoader, flags, 0, packed);
  if (const uint8_t named = name(dataset)) now(Code::kLoaderName, named, 0, number);
}
void LoaderRecorder::worker(uint32_t loader, uint32_t number, int32_t pid) {
  now(Code::kLoaderWorker, 0, 0,
      uint64_t{static_cast<uint32_t>(pid)} << 32 | uint64_t{loader & 0xffff} << 16 |
          (number & 0xffff));
}
void LoaderRecorder::started(uint32_t loader, int64_t ns) {
  now(Code::kLoaderStarted, static_cast<uint8_t>(loader), 0, static_cast<uint64_t>(ns));
}
void LoaderRecorder::epoch(uint32_t loader) {
  now(Code::kLoaderEpoch, static_cast<uint8_t>(loader), 0, 0);
}

void LoaderRecorder::taken(uint32_t loader, uint64_t packed, bool grad_on, bool ready) {
  now(Code::kLoaderTaken, static_cast<uint8_t>(loader),
      static_cast<uint8_t>((grad_on ? wire::kGradOn : 0) | (ready ? wire::kReady : 0)), packed);
}

void LoaderRecorder::batch_done(uint32_t loader, uint32_t samples, int64_t fetch_ns,
                                int64_t now_ns) {
  if (loader != loader_ && batches_ > 0) flush(now_ns);
  loader_ = loader;
  ++batches_;
  samples_ += samples;
  longest_ns_ = std::max(longest_ns_, fetch_ns);
  add(LoaderPart::kFetch, fetch_ns);
  if (detailed_) {
    ++detailed_batches_;
    add(LoaderPart::kDetailFetch, fetch_ns);
  }
  const int64_t each = fetch_ns / std::max<int64_t>(1, samples);
  sample_ns_ = sample_ns_ == 0 ? each : (7 * sample_ns_ + each) / 8;
  if (until_detail_ > 0) --until_detail_;
  detailed_ = sample_ns_ >= kShortSampleNs || until_detail_ == 0;
  if (detailed_) until_detail_ = kDetailEvery;
  if (flush_is_due(now_ns)) flush(now_ns);
}

void LoaderRecorder::taken_over(uint32_t loader, int64_t now_ns) {
  if (!flush_is_due(now_ns)) return;
  if (batches_ == 0) loader_ = loader;
  flush(now_ns);
}

void LoaderRecorder::flush(int64_t now_ns) {
  if (!is_open()) return;
  const bool off = writer_.head().control.word.load(std::memory_order_relaxed) ==
                   static_cast<uint32_t>(wire::Control::kOff);
  muted_.store(off, std::memory_order_relaxed);
  add(LoaderPart::kLongestBatch, longest_ns_);
  const uint32_t numbers = kFirstUserPhase + names_;
  for (uint32_t i = 0; i < numbers; ++i) {
    if (sums_[i].load(std::memory_order_relaxed) == 0) continue;
    const int64_t sum = sums_[i].exchange(0, std::memory_order_relaxed);
    if (!off && sum > 0)
      event(Code::kLoaderPart, static_cast<uint8_t>(i), 0, static_cast<uint64_t>(sum), now_ns);
  }
  if (!off)
    event(Code::kLoaderBatches, static_cast<uint8_t>(loader_),
          batches_ > 0 && detailed_batches_ == batches_ ? wire::kDetailed : 0,
          uint64_t{batches_} << 32 | samples_, now_ns);
  batches_ = samples_ = detailed_batches_ = 0;
  longest_ns_ = 0;
  flushed_ns_ = now_ns;
}

}  // namespace stepscope::recorder
