// Folds the records of one process into steps: who owned each instant of the step thread's
// timeline.
//
// Rules (design, "Where the hooks are" and "A step"): the innermost span owns the time, except that
// validation, checkpoint and profiler own all within them (the innermost of these three), and gc
// and compile are taken out of whatever they interrupt. Phases of a step, the user's included, are
// exclusive and add up to it. See fold_sweep.h.
//
// What it reads: spans; kSync, a sync point of the step that it ends in; kStep closes a step; the instants kZeroGrad, kOptimizerSkipped and kStepBegin
// (the first step begins; with trace_step each time a block is entered). Spans go to steps by time,
// not by the order of the records: what reaches beyond a close, or lies after it, is kept for the
// next one. So a restart that reads on from needed_index() may meet closes again that were given
// out; resume() says until when, and these are passed over.
//
// Thread safety: none, one owner. Bounded: keeps at most kMaxPending records of the step in
// progress; beyond that the step is incomplete. Pure: no clock, no I/O. Invariant: records are
// pushed in the order of their index.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent/fold_sweep.h"
#include "agent/record.h"
#include "model/step_sample.h"
#include "ring/reader.h"

namespace stepscope::agent {

struct Folded {
  std::vector<StepSample> steps;
  std::vector<Occurrence> occurrences;
};

class Fold {
 public:
  static constexpr size_t kMaxPending = 100'000;
  // What the numbers in records stand for.
  struct Tables {
    std::function<std::string(uint8_t)> name_of;  // a user's phase
    std::function<std::optional<ring::GroupValue>(uint32_t)> group_of;
  };
  Fold(int32_t rank, Tables tables);

  void push(const Record& record, Folded& out);
  // The process ended: rule (d). rest: what a close would say of the step in progress.
  void finish(const Record& rest, Folded& out);
  // Records of events before it are in what was given out; 0: nothing was yet.
  uint64_t needed_index() const { return needed_index_; }
  bool incomplete() const { return incomplete_; }  // records of the step in progress were given up
  void set_rank(int32_t rank);
  void set_explicit();               // trace_step makes the steps: what is left at the end is none
  void resume(int64_t last_end_ns);  // steps up to here were given out by an earlier agent

 private:
  void add(const Record& record, uint8_t phase, ItemKind kind, Folded& out);
  void add_sync(const Record& record);
  void take_syncs(StepSample& step);
  void close(const Record& record, Folded& out);
  static void describe(StepSample& step, const Record& record);
  void keep_carried(int64_t end_ns);
  StepSample sweep(int64_t begin_ns, int64_t end_ns, int64_t block_begin_ns, Folded& out);
  void name_user_phases(StepSample& step);
  int64_t block_begin(int64_t begin_ns, int64_t end_ns) const;
  int64_t rest_begin() const;
  void give_up_pending(Folded& out);

  int32_t rank_;
  Tables tables_;
  std::array<std::string, kMaxUserPhases> names_;  // asked for once
  std::vector<Item> pending_;
  struct PendingSync {
    SyncPoint point;
    uint64_t record_index;
  };
  std::vector<PendingSync> syncs_;
  std::array<std::optional<ring::GroupValue>, wire::kMaxGroups + 1>
      groups_;  // asked for until known
  Sweep sweep_;
  Shares shares_;
  uint64_t next_index_ = 0;  // after the event of the last record pushed
  uint8_t sub_ = 0;          // number of the next record of that event
  uint64_t needed_index_ = 0;
  int crowded_closes_ = 0;  // in a row, with more than kCrowded items kept
  std::optional<int64_t> last_end_ns_;
  bool explicit_ = false;
  bool incomplete_ = false;
};

}  // namespace stepscope::agent
