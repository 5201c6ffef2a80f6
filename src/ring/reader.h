// Reads a segment that another process writes, or wrote before it died. Every byte is hostile: sizes, offsets,
// numbers and strings are copied out once and checked against what the file really holds; nothing is believed twice.
//
// Thread safety: one reader object, one thread; any number of writers at the same time.
// Lifetime: maps the file while it lives; the file may be unlinked meanwhile.
// Invariant: never reads outside the mapping, never loops on a number that the segment holds.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "wire/segment_format.h"

namespace stepscope::ring {

// A copy of a record, checked: kind known, t1 >= t0 for spans. `index` is its number from the ring's start.
struct RecordValue {
  uint64_t index;
  int64_t t0_ns, t1_ns;
  uint32_t step;
  wire::RecordKind kind;
  uint8_t phase, flags, device;
  uint64_t a, b;
};

struct IdentityValue {
  uint64_t nonce;
  int64_t pid_start_ticks, mono_ns, wall_ns;
  int32_t pid;
  wire::Role role;
  int32_t rank, local_rank, world_size, local_world_size, node_rank, attempt;
  uint32_t facts;
  std::string node, run_id, python_version, torch_version, executable;  // printable, cut at the field's end
};

struct NowValue {
  uint8_t phase;
  uint64_t step;
  int64_t since_ns;
};

class Reader {
 public:
  static Result<Reader> open(const std::string& path);
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;
  ~Reader();

  IdentityValue identity() const;  // read anew: the late fields change
  NowValue now() const;
  uint64_t head() const;
  uint64_t tail() const;
  uint64_t dropped() const;
  uint64_t cost_ns() const;
  uint64_t cost_calls() const;
  std::string name(uint8_t user_phase) const;  // "phase-40" when the table does not have it

  // Copies published records from `from` on (clamped into what the ring can still hold), in order, at most
  // out.size(). Stops at the first unfinished one, unless writer_dead: then holes are skipped.
  // Returns how many were copied; next_index is where to go on; lost counts holes skipped.
  struct Drained { size_t count; uint64_t next_index; uint64_t lost; };
  Drained drain(uint64_t from, std::span<RecordValue> out, bool writer_dead) const;

  void release(uint64_t tail);  // records before it may be overwritten
  void beat(int64_t mono_ns);
  void control(wire::Control word);

 private:
  Reader() = default;
  const wire::SegmentHead* head_ = nullptr;
  size_t bytes_ = 0;
  uint64_t capacity_ = 0;
};

}  // namespace stepscope::ring
