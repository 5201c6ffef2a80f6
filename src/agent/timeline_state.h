// All that a timeline knows between two events, as plain bytes: a copy of it is a point from which
// the same events give the same steps again. Segment keeps such points in memory, and the one that
// is needed is stored with the position in run.db.
//
// Thread safety: pure functions. Bounded: a few KB, no pointers. Invariant: what restore_state()
// gives leads nowhere outside a table and overflows nothing, whatever the bytes were.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "agent/phase_stack.h"
#include "agent/step_clock.h"

namespace stepscope::agent {

struct TimelineState {
  StepClock clock;
  PhaseStack stack;
  int64_t last_ns = 0;          // of the newest event
  int64_t since_ns = 0;         // when what the thread does now began; 0: nothing was seen yet
  uint64_t started_loader = 0;  // its next fetch is the first of its epoch
  bool loader_started = false;
  bool loader_seen = false;  // by the thread that trains, as far as is known
  int sync_depth = 0;
  int64_t sync_begin_ns = 0;
  uint64_t sync = 0;           // the sync point that began then
  uint64_t backward_sync = 0;  // that the backward in progress will end with
  bool sync_together = false;
  uint32_t facts = 0;  // FactBits that events told

  bool sane() const;
};
static_assert(std::is_trivially_copyable_v<TimelineState>);

std::string save_state(const TimelineState& state);
// Nothing when these bytes are no state of this very program, or were damaged.
std::optional<TimelineState> restore_state(std::string_view bytes);

}  // namespace stepscope::agent
