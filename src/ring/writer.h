// The writing half of a segment, in the process that is observed.
//
// Laws (wire/segment_format.h): write() does not allocate, lock, make a system call, log, throw or
// wait; one release store publishes a record; what finds no room is dropped and counted. Only
// create() makes system calls.
//
// Thread safety: any number of threads may write at once, in one process. claim = compare-and-swap
// on head, which never passes tail + capacity; a claimed record that is never published is a hole,
// which the reader can tell.
// Lifetime: a view; copies share the mapping, which stays for the life of the process, because
// another thread may be about to write.
// Invariant: nothing that stands in shared memory decides where a store goes, except head, modulo
// the capacity that was computed here. A tail that cannot be true counts as a full ring.
#pragma once

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

struct RecordFields {
  int64_t t0_ns, t1_ns;
  uint32_t step;
  wire::RecordKind kind;
  uint8_t phase, flags;
  uint64_t a = wire::kUnmeasured, b = 0;
};

std::string segment_file_name(int32_t pid, uint64_t nonce);  // seg-<pid>-<nonce, 16 hex digits>

class Writer {
 public:
  Writer() = default;  // writes nothing, drops everything, counts nothing

  // A new file in the folder, whole before it gets its name. Errors: no room, folder unusable;
  // nothing is left behind.
  static Result<Writer> create(const SegmentOptions& options);
  // The same over the caller's zeroed memory, 64-byte aligned: for tests and sanitizers.
  static Result<Writer> over(void* memory, size_t bytes, const SegmentOptions& options);

  explicit operator bool() const { return head_ != nullptr; }
  wire::SegmentHead& head() const { return *head_; }
  uint64_t capacity() const { return capacity_; }

  bool write(const RecordFields& fields) noexcept {
    uint64_t index;
    if (!claim(index)) return false;
    publish(index, fields);
    return true;
  }
  // The two halves of write(), apart so that a test can die between them.
  bool claim(uint64_t& index) noexcept;
  void publish(uint64_t index, const RecordFields& fields) noexcept {
    wire::Record& r = ring_[index % capacity_];
    r.t0_ns = fields.t0_ns;
    r.t1_ns = fields.t1_ns;
    r.step = fields.step;
    r.kind = fields.kind;
    r.phase = fields.phase;
    r.flags = fields.flags;
    r.device = wire::kHostClock;
    r.a = fields.a;
    r.b = fields.b;
    r.seq.store(index + 1, std::memory_order_release);
    // The next claim is a full barrier: have the lines that the next record goes to on their way by then. Past the
    // ring's end this asks for nothing.
    __builtin_prefetch(&r + 1, 1);
    __builtin_prefetch(&r + 2, 1);
  }

 private:
  bool room_after_all(uint64_t known_tail) noexcept;

  wire::SegmentHead* head_ = nullptr;
  wire::Record* ring_ = nullptr;
  uint64_t capacity_ = 0;
};

inline bool Writer::claim(uint64_t& index) noexcept {
  if (head_ == nullptr) return false;
  wire::WriterLine& line = head_->writer;
  // Bounded: a thread that loses this often gives its record up instead of waiting for the others.
  for (int attempt = 0; attempt < 64; ++attempt) {
    const uint64_t tail = line.known_tail.load(std::memory_order_acquire);
    uint64_t head = line.head.load(std::memory_order_relaxed);
    if (head - tail >= capacity_) {
      if (!room_after_all(tail)) break;
      continue;
    }
    if (line.head.compare_exchange_weak(head, head + 1, std::memory_order_relaxed)) {
      index = head;
      return true;
    }
  }
  line.dropped.fetch_add(1, std::memory_order_relaxed);
  return false;
}

}  // namespace stepscope::ring
