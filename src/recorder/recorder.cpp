// The recorder's life: open, close, fork, pause, facts. The events are in events.cpp.
#include "recorder/recorder.h"

#include <pthread.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/clock.h"

namespace stepscope::recorder {

constinit Recorder Recorder::instance_;

namespace {

int64_t cost_of_clock_ns() {
  int64_t best = INT64_MAX;
  for (int i = 0; i < 32; ++i) {
    const int64_t before = monotonic_ns();
    best = std::min(best, monotonic_ns() - before);
  }
  return best;
}

}  // namespace

Status Recorder::open(const OpenOptions& options) {
  if (is_open()) return Error{"this process already records into a segment", ""};
  ring::SegmentOptions segment{.folder = options.folder,
                               .role = options.role,
                               .segment_bytes = options.segment_bytes,
                               .shm_share = options.shm_share,
                               .rank = options.rank,
                               .local_rank = options.local_rank,
                               .world_size = options.world_size,
                               .local_world_size = options.local_world_size,
                               .node_rank = options.node_rank,
                               .attempt = options.attempt,
                               .run_id = options.run_id,
                               .python_version = options.python_version,
                               .torch_version = options.torch_version,
                               .executable = options.executable};
  const auto writer = ring::Writer::create(segment);
  if (!writer) return writer.error();
  if (this == &instance_) {
    static bool fork_handled = false;
    if (!fork_handled && pthread_atfork(nullptr, nullptr, silence_child) == 0) fork_handled = true;
  }
  start_over(*writer);
  return ok();
}

// A forked child comes here with its parent's state: all of it goes, but what is true of the
// process itself.
void Recorder::start_over(const ring::Writer& writer) {
  writer_ = writer;
  muted_ = loader_started_ = false;
  until_sample_ = 1;
  clock_cost_ns_ = cost_of_clock_ns();
  last_event_ns_ = 0;
  sync_depth_ = 0;
  group_count_ = 0;
  stack_.clear();
  clock_ = StepClock{};
  step_thread_.store(nullptr, std::memory_order_relaxed);
  for (std::atomic<bool>* flag : {&bound_, &naming_, &in_backward_})
    flag->store(false, std::memory_order_relaxed);
  names_.store(0, std::memory_order_relaxed);
  const uint32_t kept = facts_.load(std::memory_order_relaxed) & wire::kFactTorchImported;
  facts_.store(kept, std::memory_order_relaxed);
  writer_.head().identity.facts.store(kept, std::memory_order_relaxed);
  show_now(monotonic_ns());
  open_.store(true, std::memory_order_relaxed);
  state_.store(State::kOn, std::memory_order_release);
}

// The mapping stays: another thread may be about to write.
void Recorder::close() {
  if (!is_open()) return;
  state_.store(State::kOff, std::memory_order_relaxed);
  clock_.finish(monotonic_ns());
  settle();
  set_fact(wire::kFactClosed);
  open_.store(false, std::memory_order_relaxed);
}

// In a forked child: it shares its parent's segment and must not touch it.
void Recorder::silence_child() {
  instance_.state_.store(State::kOff, std::memory_order_relaxed);
  instance_.open_.store(false, std::memory_order_relaxed);
  instance_.writer_ = ring::Writer{};
}

void Recorder::pause() { state_.store(State::kOff, std::memory_order_relaxed); }
void Recorder::resume() {
  State off = State::kOff;
  if (is_open()) state_.compare_exchange_strong(off, State::kResumed, std::memory_order_relaxed);
}

// Events were missed: what was open may have ended.
void Recorder::forget_open() {
  State resumed = State::kResumed;
  state_.compare_exchange_strong(resumed, State::kOn, std::memory_order_relaxed);
  stack_.clear();
  sync_depth_ = 0;
  loader_started_ = false;
  in_backward_.store(false, std::memory_order_relaxed);
  clock_.forget_open();
}

// The first thread that makes an event is the step thread, until a backward or trace_step binds
// another. That happens once, at the start of training; events that the first thread has in flight
// at that moment may be lost.
bool Recorder::bind(const void* self, bool binds) {
  const void* none = nullptr;
  if (step_thread_.compare_exchange_strong(none, self, std::memory_order_relaxed)) {
    bound_.store(binds, std::memory_order_relaxed);
    return true;
  }
  if (!binds || bound_.exchange(true, std::memory_order_relaxed)) return false;
  step_thread_.store(self, std::memory_order_relaxed);
  forget_open();
  return true;
}

void Recorder::set_fact(uint32_t fact) {
  if ((facts_.load(std::memory_order_relaxed) & fact) == fact) return;
  facts_.fetch_or(fact, std::memory_order_relaxed);
  if (writer_) writer_.head().identity.facts.fetch_or(fact, std::memory_order_release);
}

void Recorder::set_ranks(int rank, int local_rank, int world_size, int local_world_size) {
  if (!writer_) return;
  wire::Identity& id = writer_.head().identity;
  id.world_size.store(world_size,
                      std::memory_order_relaxed);  // first: a rank outside it would not be believed
  id.local_world_size.store(local_world_size, std::memory_order_relaxed);
  id.local_rank.store(local_rank, std::memory_order_relaxed);
  id.rank.store(rank, std::memory_order_relaxed);
}

uint32_t Recorder::step() const {
  return writer_ ? static_cast<uint32_t>(
                       writer_.head().now.phase_and_step.load(std::memory_order_relaxed))
                 : 0;
}

uint8_t Recorder::name(const char* user_phase) {
  constexpr auto kNoRoom = static_cast<uint8_t>(Phase::kOther);
  if (const auto built_in = phase_from_name(user_phase)) return static_cast<uint8_t>(*built_in);
  if (!writer_) return kNoRoom;
  wire::NameTable& table = writer_.head().names;
  const size_t length = strnlen(user_phase, wire::kNameBytes - 1);
  const auto find = [&](uint32_t from, uint32_t end) -> uint8_t {
    for (uint32_t i = from; i < end; ++i)
      if (std::strncmp(table.names[i], user_phase, length) == 0 && table.names[i][length] == '\0')
        return static_cast<uint8_t>(kFirstUserPhase + i);
    return 0;
  };
  const uint32_t known = names_.load(std::memory_order_acquire);
  if (const uint8_t number = find(0, known)) return number;
  // One thread at a time adds a name; who comes in between is not made to wait.
  if (naming_.exchange(true, std::memory_order_acquire)) return kNoRoom;
  const uint32_t count = names_.load(std::memory_order_relaxed);
  uint8_t number = find(known, count);
  if (number == 0 && count < kMaxUserPhases) {
    std::memcpy(table.names[count], user_phase,
                length);  // the rest is 0 since the segment was made
    names_.store(count + 1, std::memory_order_release);
    table.count.store(count + 1, std::memory_order_release);
    number = static_cast<uint8_t>(kFirstUserPhase + count);
  }
  naming_.store(false, std::memory_order_release);
  return number != 0 ? number : kNoRoom;
}

}  // namespace stepscope::recorder
