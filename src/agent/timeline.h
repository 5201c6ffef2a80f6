// What the events of one process mean: drives the step clock and the stack of open phases, and
// tells spans, steps and marks, in the order in which they become known.
//
//   events -> Timeline -> records -> Fold -> steps
//
// A step's begin, end and number are decided here (StepClock), where its time went by the fold.
// Where events are missing, whatever was open may have ended unseen: it is forgotten, and the step
// in progress is flagged kStepIncomplete.
//
// Thread safety: none, one owner. Bounded: its state is a few KB, and an event makes at most a few
// dozen records. Pure: no clock, no I/O. Invariant: events may come in any order, with any values
// and times; a time that no clock gives counts as a missing event, one that goes back as the one
// before it.
#pragma once

#include <cstdint>
#include <vector>

#include "agent/now.h"
#include "agent/record.h"
#include "agent/timeline_state.h"
#include "model/phase.h"
#include "ring/reader.h"

namespace stepscope::agent {

class Timeline {
 public:
  // Appends the records that this event makes known.
  void push(const ring::EventValue& event, std::vector<Record>& out);
  // Nothing more comes: a validation in progress is given out. index: of the event that will not
  // come.
  void finish(uint64_t index, std::vector<Record>& out);

  void missed();           // events before the next one are missing
  void flag_incomplete();  // the step in progress: what was known of it is gone
  void number_from(uint32_t step) { s_.clock.number_from(step); }  // before the first event

  // The step record that a close would have made now, but for its end.
  Record in_progress() const;
  Now now() const;
  uint32_t facts() const { return s_.facts; }  // FactBits that events told

  const TimelineState& state() const { return s_; }
  void restore(const TimelineState& state) { s_ = state; }

 private:
  void apply(const ring::EventValue& event);
  void forget_open();
  void start_over();
  // This thread is the one: the loaders that it fetched from feed training.
  void trains() {
    if (s_.loader_seen) s_.facts |= kFactDataLoader;
  }
  void open(Phase phase, int flags = 0) { open(static_cast<uint8_t>(phase), flags); }
  void open(uint8_t phase, int flags);
  void close(Phase phase, int flags) { close(static_cast<uint8_t>(phase), flags); }
  void close(uint8_t phase, int flags);
  void change() { s_.since_ns = t_ns_; }
  void write(RecordKind kind, Phase phase, int64_t t0_ns, int64_t t1_ns, int flags = 0) {
    write(kind, static_cast<uint8_t>(phase), t0_ns, t1_ns, flags);
  }
  void write(RecordKind kind, uint8_t phase, int64_t t0_ns, int64_t t1_ns, int flags);
  void write_sync(uint64_t sync, bool together, int64_t ready_ns);
  void mark(RecordKind kind, int64_t t_ns) { write(kind, uint8_t{0}, t_ns, t_ns, 0); }
  void settle() {
    if (s_.clock.decided().any) write_decided();
  }
  void write_decided();
  void write_step(const ClosedStep& step);

  void iter_begin(uint64_t loader, bool grad_on);
  void fetch_begin(uint64_t loader, bool grad_on);
  void fetch_end(const ring::EventValue& event);
  void backward_end(const ring::EventValue& event);
  void recomputed(uint64_t ns);
  void sync_begin(const ring::EventValue& event);
  void sync_end();
  void step_enter();

  TimelineState s_;
  // of the event in progress
  std::vector<Record>* out_ = nullptr;
  uint64_t index_ = 0;
  int64_t t_ns_ = 0;
};

}  // namespace stepscope::agent
