// Who owned each instant of an interval: spans in, shares of the twelve phases out.
//
//   class   spans                              owns
//   taken   gc, compile                        whatever they interrupt; within compile all but gc
//   whole   validation, checkpoint, profiler   all within them; of these three the innermost
//   plain   everything else, user phases too   the innermost
// Innermost is what began last, so that spans which cross instead of nesting still have one answer.
// Two stretches without a span of their own count as plain spans of forward: from the last root's
// return to backward's entry (part `loss`), and, where no root was called, from the last training
// fetch, zero_grad or optimizer end to backward's entry. What nobody owns is `other`, told apart by
// place.
//
// Thread safety: none, one owner; keeps its buffers between calls so that a step costs no
// allocation. Pure.
// Invariant: the shares add up to end - begin exactly, whatever the spans are. O(n log n).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "model/phase.h"
#include "model/step_sample.h"

namespace stepscope::agent {

enum class ItemKind : uint8_t {
  kSpan,
  kLoss,               // a stretch of forward
  kFunctionalForward,  // a stretch of forward
  kZeroGrad,           // marks
  kSkipped,
  kStepBegin,
  kRecomputed,  // an amount of backward, not a place in it
};

struct Item {
  int64_t t0_ns, t1_ns;
  uint64_t index;  // of its event
  uint32_t step;
  uint8_t phase, flags;
  ItemKind kind;
  uint8_t sub = 0;  // number among the records of that event

  bool is(Phase p) const { return kind == ItemKind::kSpan && phase == static_cast<uint8_t>(p); }
  bool has(int span_flags) const { return (flags & span_flags) != 0; }
  bool training_fetch() const;
};

struct Interval {
  int64_t begin_ns, end_ns;
  int64_t block_begin_ns;  // entry of the trace_step block; begin_ns where there is none
};

struct Shares {
  std::array<int64_t, kPhaseCount> phase_ns{};
  std::array<int64_t, kMaxUserPhases> user_ns{};
  uint64_t users = 0;  // bit i: user phase i has time
  StepParts parts;
};

class Sweep {
 public:
  // Sorts `items` (outer first). Those that end after the interval count as far as they lie in it
  // and give no occurrence yet. occurrences: kind, step and times are set.
  void run(std::vector<Item>& items, const Interval& interval, Shares& shares,
           std::vector<Occurrence>& occurrences);
  void give_back_memory();  // that of the buffers

 private:
  enum class Place : uint8_t { kBeforeForward, kAfterForward, kAfterBackward, kAfterOptimizer };
  struct MicroStep {  // what happened since the last backward, for the stretches of forward
    int64_t anchor_ns, forward_end_ns = 0;
    bool forward_live = false, forward_begun = false;
    int backwards_open = 0;
  };

  template <typename Begin, typename End>
  void walk(const std::vector<Item>& items, int64_t until_ns, Begin&& begin, End&& end);
  void find_stretches(const std::vector<Item>& items, const Interval& interval);
  void begin_item(const Item& item, const Interval& interval, std::vector<Occurrence>& occurrences);
  void end_item(const Item& item);
  void note_occurrence(const Item& item, const Interval& interval,
                       std::vector<Occurrence>& occurrences);
  void note_epoch_start(const Item& item, const Interval& interval,
                        std::vector<Occurrence>& occurrences);
  void account(int64_t from_ns, int64_t to_ns, const Interval& interval, Shares& shares);
  static void add_recomputed(const Item& item, const Interval& interval, StepParts& parts);
  static void drop_ended(std::vector<Item>& stack, int64_t now_ns);

  std::vector<Item> stretches_, merged_;
  std::vector<uint32_t> open_;  // heap by end: begun, not ended
  // Stacks; what ended is dropped when it comes to the top.
  std::vector<Item> taken_, whole_, plain_;
  Place place_ = Place::kBeforeForward;
  // End of the outermost span of each kind so far.
  std::array<int64_t, kOccurrenceKinds> covered_until_{};
  int64_t iter_ns_ = 0;  // of a loader's start whose first fetch has not come yet
  bool iter_waiting_ = false;
};

}  // namespace stepscope::agent
