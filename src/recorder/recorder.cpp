// The recorder's life: open, close, fork, pause, facts; and the hot path, which is event() alone.
#include "recorder/recorder.h"

#include <pthread.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/clock.h"
#include "base/hot.h"

namespace stepscope::recorder {

STEPSCOPE_HOT_DATA constinit Recorder Recorder::instance_;

void Recorder::check_layout() {
  static_assert(offsetof(Recorder, writer_) + ring::Writer::kHotOffset == kHotLine);
  static_assert(offsetof(Recorder, bound_) < kHotLine + 64);
}

namespace {

constexpr uint32_t kFirstSample =
    7;  // a short run has a figure too; its first page faults are over

int64_t cost_of_clock_ns() {
  int64_t best = INT64_MAX;
  for (int i = 0; i < 32; ++i) {
    const int64_t before = monotonic_ns();
    best = std::min(best, monotonic_ns() - before);
  }
  return best;
}

}  // namespace

ring::SegmentOptions segment_of(const OpenOptions& options) {
  return {.folder = options.folder,
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
}

Status Recorder::open(const OpenOptions& options) {
  if (is_open()) return Error{"this process already records into a segment", ""};
  const auto writer = ring::Writer::create(segment_of(options));
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
  until_sample_ = kFirstSample;
  clock_ = vdso_clock();
  clock_cost_ns_ = cost_of_clock_ns();
  ready_ns_.store(kOutsideBackward, std::memory_order_relaxed);
  for (auto* thread : {&owner_, &step_thread_}) thread->store(nullptr, std::memory_order_relaxed);
  for (auto* flag : {&bound_, &naming_}) flag->store(false, std::memory_order_relaxed);
  names_.store(0, std::memory_order_relaxed);
  const uint32_t kept = facts_.load(std::memory_order_relaxed) & wire::kFactTorchImported;
  facts_.store(kept, std::memory_order_relaxed);
  writer_.head().identity.facts.store(kept, std::memory_order_relaxed);
  open_.store(true, std::memory_order_relaxed);
  state_.store(State::kOn, std::memory_order_release);
}

// The mapping stays: another thread may be about to write.
void Recorder::close() {
  if (!is_open()) return;
  pause();
  set_fact(wire::kFactClosed);
  open_.store(false, std::memory_order_relaxed);
}

// In a forked child: it shares its parent's segment and must not touch it.
void Recorder::silence_child() {
  instance_.pause();
  instance_.open_.store(false, std::memory_order_relaxed);
  instance_.writer_ = ring::Writer{};
}

void Recorder::pause() {
  state_.store(State::kOff, std::memory_order_relaxed);
  owner_.store(nullptr, std::memory_order_relaxed);
}
void Recorder::resume() {
  State off = State::kOff;
  if (is_open()) state_.compare_exchange_strong(off, State::kResumed, std::memory_order_relaxed);
}

// --- the hot path

STEPSCOPE_HOT_CODE [[gnu::noinline]] void Recorder::event(uint32_t what, uint64_t a) {
  if (!is_owner() && !take_over(what)) [[unlikely]]
    return;
  if (--until_sample_ == 0) [[unlikely]]
    return event_now_and_then(what, a);
  timespec now;
  clock_(CLOCK_MONOTONIC, &now);
  writer_.write(what, a, static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec);
}

// One call in kCostEvery also measures what it costs and looks at the control word.
[[gnu::cold]] void Recorder::event_now_and_then(uint32_t what, uint64_t a) {
  // A longer call was interrupted: that is the machine's load and not our cost, and 61 times it
  // would hide all else.
  constexpr int64_t kLongestNs = 20'000;
  until_sample_ = wire::kCostEvery;
  const int64_t begin_ns = monotonic_ns();
  writer_.write(what, a, monotonic_ns());
  const int64_t cost = monotonic_ns() - begin_ns - clock_cost_ns_;
  wire::SegmentHead& head = writer_.head();
  head.writer.cost_ns.fetch_add(static_cast<uint64_t>(std::clamp<int64_t>(cost, 0, kLongestNs)),
                                std::memory_order_relaxed);
  head.writer.cost_calls.fetch_add(1, std::memory_order_relaxed);
  if (head.control.word.load(std::memory_order_relaxed) !=
      static_cast<uint32_t>(wire::Control::kOff))
    return;
  State on = State::kOn;
  if (state_.compare_exchange_strong(on, State::kMuted, std::memory_order_relaxed))
    owner_.store(nullptr, std::memory_order_relaxed);
}

// Whether the calling thread may write after all. The first thread that makes an event is the step
// thread, until a backward or trace_step binds another. That happens once, at the start of training;
// events that the first thread has in flight at that moment may be lost.
[[gnu::cold]] bool Recorder::take_over(uint32_t what) {
  State state = state_.load(std::memory_order_relaxed);
  if (state == State::kOff) return false;
  const void* self = thread_mark();
  const void* first = nullptr;
  const auto code = static_cast<Code>(what & 0xff);
  const bool binds = code == Code::kBackwardBegin || code == Code::kStepEnter;
  uint64_t why = wire::kAfterPause;
  if (step_thread_.compare_exchange_strong(first, self, std::memory_order_relaxed)) {
    bound_.store(binds, std::memory_order_relaxed);
  } else if (first != self) {
    if (!binds || bound_.exchange(true, std::memory_order_relaxed)) return false;
    step_thread_.store(self, std::memory_order_relaxed);
    if (state == State::kOn) {
      why = wire::kOtherThread;
      state = State::kResumed;
    }
  }
  if (state == State::kMuted && writer_.head().control.word.load(std::memory_order_relaxed) ==
                                    static_cast<uint32_t>(wire::Control::kOff))
    return false;
  if (state != State::kOn) {
    State seen = state_.load(std::memory_order_relaxed);
    if (seen == State::kOff ||
        !state_.compare_exchange_strong(seen, State::kOn, std::memory_order_relaxed))
      return false;  // paused meanwhile
    writer_.write(wire::pack(Code::kResumed), why, monotonic_ns());
  }
  owner_.store(self, std::memory_order_relaxed);
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

uint32_t Recorder::group(uint64_t id, uint32_t members) {
  if (!writer_) return 0;
  wire::GroupTable& table = writer_.head().groups;
  const uint32_t count = table.count.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < count; ++i)
    if (table.groups[i].id.load(std::memory_order_relaxed) == id) return i + 1;
  if (count == wire::kMaxGroups) return 0;
  table.groups[count].id.store(id, std::memory_order_relaxed);
  table.groups[count].members.store(members, std::memory_order_relaxed);
  table.count.store(count + 1, std::memory_order_release);
  return count + 1;
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
