// One occasion on which the ranks of a group wait for each other, seen from one rank. Plain value; times in
// ns on the rank's own monotonic clock. Ranks are joined by (group, index), never by time.
#pragma once

#include <cstdint>

namespace stepscope {

struct SyncPoint {
  uint64_t group = 0;    // the same number on every member; 0: not known, joins with nothing
  uint32_t index = 0;    // among the group's sync points since the process began, dropped ones too
  uint32_t members = 0;  // ranks of the group; 0: not known
  int64_t ready_ns = 0;  // begins to wait: all its local work is done
  int64_t leave_ns = 0;  // the wait is over
  // All members leave at once (all-reduce, all-gather, reduce-scatter, all-to-all, barrier, DDP's buffer
  // broadcast): tells who was late. Else it only says that this rank waited.
  bool together = false;

  int64_t wait_ns() const { return leave_ns - ready_ns; }
  bool operator==(const SyncPoint&) const = default;
};

}  // namespace stepscope
