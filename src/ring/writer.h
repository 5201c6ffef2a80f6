// The writing half of a segment, in the process that is observed.
//
// Laws (wire/segment_format.h): write() does not allocate, lock, make a system call, log, throw or
// wait; one release store publishes an event; what finds no room is dropped, counted, and told by
// the next event that fits. Only create() makes system calls.
//
// Thread safety: one thread writes at a time. Should two meet all the same (a thread that takes over
// while the other is inside write()), an event of theirs may be lost or mixed, and nothing else:
// every store stays inside the ring, and the next write goes on from one number.
// Lifetime: the mapping stays for the life of the process, because a thread may be about to write.
// Invariant: nothing that stands in shared memory decides where a store goes. A tail that cannot be
// true counts as a full ring.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "wire/segment_format.h"

namespace stepscope::ring {

struct SegmentOptions {
  std::string folder;  // the run's segment folder on a tmpfs, exists
  wire::Role role = wire::Role::kUnknown;
  size_t segment_bytes = wire::kRankSegmentBytes;
  double shm_share = 0.05;  // all segments together at most this share of the free space
  int rank = -1, local_rank = -1, world_size = 1, local_world_size = 1, node_rank = -1, attempt = 0;
  std::string run_id, python_version, torch_version, executable;
};

std::string segment_file_name(int32_t pid, uint64_t nonce);  // seg-<pid>-<nonce, 16 hex digits>

// What write() needs comes last, so that an owner can put it on a cache line of its own.
class Writer {
 public:
  constexpr Writer() = default;  // writes nothing, drops everything, counts nothing

  // A new file in the folder, whole before it gets its name. Errors: no room, folder unusable;
  // nothing is left behind.
  static Result<Writer> create(const SegmentOptions& options);
  // The same over the caller's zeroed memory, 64-byte aligned: for tests and sanitizers.
  static Result<Writer> over(void* memory, size_t bytes, const SegmentOptions& options);

  explicit operator bool() const { return head_ != nullptr; }
  wire::SegmentHead& head() const { return *head_; }
  uint64_t capacity() const { return capacity_; }
  uint64_t written() const { return get(index_); }

  // what: wire::pack()
  bool write(uint32_t what, uint64_t a, int64_t t_ns) noexcept {
    uint64_t index = get(index_);
    uint64_t at = index - get(lap_);
    if (at >= get(span_)) [[unlikely]] {
      if (!make_room()) return false;
      index = get(index_);
      at = index - get(lap_);
      if (at >= get(span_)) return false;
    }
    wire::Event& event = ring_[at];
    event.t_ns.store(t_ns, std::memory_order_relaxed);
    event.a.store(a, std::memory_order_relaxed);
    event.what.store(what, std::memory_order_relaxed);
    event.missing.store(static_cast<uint32_t>(get(missing_)), std::memory_order_relaxed);
    put(missing_, 0);
    event.seq.store(index + 1, std::memory_order_release);
    put(index_, index + 1);
    // The model evicts the ring between two events: have the next line on its way by then. Past the
    // ring's end this asks for nothing.
    __builtin_prefetch(&event + 2, 1);
    return true;
  }

 private:
  // Plain moves; they only say that two threads may meet here.
  static uint64_t get(const uint64_t& field) {
    return std::atomic_ref(const_cast<uint64_t&>(field)).load(std::memory_order_relaxed);
  }
  static void put(uint64_t& field, uint64_t value) {
    std::atomic_ref(field).store(value, std::memory_order_relaxed);
  }
  bool make_room() noexcept;

  wire::SegmentHead* head_ = nullptr;
  uint64_t capacity_ = 0;
  uint64_t tail_ = 0;  // the newest that was looked at; spares us the reader's line

 public:
  static constexpr size_t kHotOffset = 24;  // from here on: all that write() touches

 private:
  wire::Event* ring_ = nullptr;
  uint64_t index_ = 0;    // of the next event
  uint64_t lap_ = 0;      // index of the event in the first slot
  uint64_t span_ = 0;     // slots of this lap that may be written
  uint64_t missing_ = 0;  // dropped since the last event
};
static_assert(sizeof(Writer) == 64);

}  // namespace stepscope::ring
