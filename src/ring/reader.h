// Reads a segment that another process writes, or wrote before it died. Every byte is hostile:
// sizes, offsets, numbers and strings are copied out once and checked against what the file really
// holds; nothing is believed twice.
//
// Thread safety: one reader object, one thread; any number of writers at the same time.
// Lifetime: holds the file open, never mapped: pread of a tmpfs file sees what its writers stored,
// and a file that somebody cuts short, or that has holes in a full tmpfs, gives a short read here
// instead of SIGBUS. It may be unlinked meanwhile.
// Invariant: never loops on a number that the segment holds; memory is bounded by the caller's
// buffer.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "wire/segment_format.h"

namespace stepscope::ring {

// A copy of an event, checked: code and phase known, a host time not negative. `index` is its number
// from the ring's start.
struct EventValue {
  uint64_t index = 0;
  int64_t t_ns = 0;
  uint64_t a = 0;
  wire::EventCode code = wire::EventCode::kNone;
  uint8_t phase = 0, flags = 0, device = wire::kHostClock;
  uint32_t missing = 0;  // events that were dropped right before this one

  bool has(uint8_t event_flags) const { return (flags & event_flags) != 0; }
};

struct GroupValue {
  uint64_t id = 0;       // not 0
  uint32_t members = 0;  // 2 or more
  bool operator==(const GroupValue&) const = default;
};

struct IdentityValue {
  uint64_t nonce;
  int64_t pid_start_ticks, mono_ns, wall_ns;
  int32_t pid;
  wire::Role role;
  int32_t rank, local_rank, world_size, local_world_size, node_rank, attempt;
  uint32_t facts;
  std::string node, run_id, python_version, torch_version,
      executable;  // printable, cut at the field's end
};

class Reader {
 public:
  static Result<Reader> open(const std::string& path);
  static Result<Reader> from_fd(
      int fd, const std::string& name);  // takes the descriptor; name is for messages
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;
  ~Reader();

  IdentityValue identity() const;                  // read anew: the late fields change
  uint64_t capacity() const { return capacity_; }  // events that the ring holds
  uint64_t tail() const;                           // 0 when it cannot be true
  uint64_t dropped() const;
  int64_t ready_ns() const;  // of the newest backward that reduces; 0: not known
  uint64_t cost_ns() const;
  uint64_t cost_calls() const;
  // A process group by its number, from 1; nothing when the table does not have it.
  std::optional<GroupValue> group(uint32_t number) const;
  std::string name(uint8_t user_phase) const;  // "phase-40" when the table does not have it

  // Copies published events from number `from` on, in order, at most out.size(), and stops at the
  // first that is not there. next_index is where to go on; lost counts impossible events that were
  // passed over. Only the numbers in the slots say what is there: whoever asks for events that the
  // writer has overwritten gets nothing, and may look for the oldest() there is.
  struct Drained {
    size_t count;
    uint64_t next_index;
    uint64_t lost;
  };
  Drained drain(uint64_t from, std::span<EventValue> out) const;
  // The lowest number at or after `from` that stands in the ring; nothing when there is none.
  std::optional<uint64_t> oldest(uint64_t from) const;

  void release(uint64_t tail);  // events before it may be overwritten
  void beat(int64_t mono_ns);
  void control(wire::Control word);

 private:
  Reader(int fd, uint64_t capacity) : fd_(fd), capacity_(capacity) {}
  bool read_at(size_t offset, void* to, size_t bytes) const;
  void write_at(size_t offset, const void* from, size_t bytes);
  uint64_t word(size_t offset) const;

  int fd_ = -1;
  uint64_t capacity_ = 0;  // from the file's size, never from its bytes
};

}  // namespace stepscope::ring
