#include "agent/fold_sweep.h"

#include <algorithm>

#include "agent/record.h"

namespace stepscope::agent {
namespace {

// Outer before inner: the earlier begin, then the later end, then what became known later.
bool outer_first(const Item& a, const Item& b) {
  if (a.t0_ns != b.t0_ns) return a.t0_ns < b.t0_ns;
  if (a.t1_ns != b.t1_ns) return a.t1_ns > b.t1_ns;
  return a.index != b.index ? a.index > b.index : a.sub > b.sub;
}

bool is_taken(const Item& item) { return item.is(Phase::kGc) || item.is(Phase::kCompile); }

bool is_whole(const Item& item) {
  return item.is(Phase::kValidation) || item.is(Phase::kCheckpoint) || item.is(Phase::kProfiler);
}

bool training_forward(const Item& item) {
  return item.is(Phase::kForward) && !item.has(kSpanEvalForward);
}

bool is_span(const Item& item) {
  return item.kind == ItemKind::kSpan || item.kind == ItemKind::kLoss ||
         item.kind == ItemKind::kFunctionalForward;
}

const Item* innermost(const std::vector<Item>& stack) {
  return stack.empty() ? nullptr : &stack.back();
}

}  // namespace

bool Item::training_fetch() const { return is(Phase::kInput) && !has(kSpanNotTraining); }

void Sweep::add_recomputed(const Item& item, const Interval& interval, StepParts& parts) {
  const int64_t room_ns = interval.end_ns - interval.begin_ns - parts.recompute_ns;
  parts.recompute_ns += std::clamp<int64_t>(item.t1_ns - std::max(item.t0_ns, interval.begin_ns), 0,
                                            std::max<int64_t>(room_ns, 0));
}

// Begins and ends in order of time, an end before a begin at the same instant, the inner end first.
template <typename Begin, typename End>
void Sweep::walk(const std::vector<Item>& items, int64_t until_ns, Begin&& begin, End&& end) {
  const auto ends_later = [&items](uint32_t a, uint32_t b) {
    return items[a].t1_ns != items[b].t1_ns ? items[a].t1_ns > items[b].t1_ns : a < b;
  };
  open_.clear();
  for (size_t i = 0;;) {
    const int64_t next_ns = i < items.size() ? std::min(items[i].t0_ns, until_ns) : until_ns;
    if (!open_.empty() && items[open_.front()].t1_ns <= next_ns) {
      std::pop_heap(open_.begin(), open_.end(), ends_later);
      const uint32_t ended = open_.back();
      open_.pop_back();
      end(items[ended]);
    } else if (i < items.size() && items[i].t0_ns < until_ns) {
      begin(items[i]);
      open_.push_back(static_cast<uint32_t>(i++));
      std::push_heap(open_.begin(), open_.end(), ends_later);
    } else {
      return;
    }
  }
}

void Sweep::run(std::vector<Item>& items, const Interval& interval, Shares& shares,
                std::vector<Occurrence>& occurrences) {
  std::sort(items.begin(), items.end(), outer_first);
  find_stretches(items, interval);
  const std::vector<Item>* all = &items;
  if (!stretches_.empty()) {
    merged_.clear();
    std::merge(items.begin(), items.end(), stretches_.begin(), stretches_.end(),
               std::back_inserter(merged_), outer_first);
    all = &merged_;
  }
  taken_.clear();
  whole_.clear();
  plain_.clear();
  place_ = Place::kBeforeForward;
  covered_until_.fill(INT64_MIN);
  int64_t cursor_ns = interval.begin_ns;
  const auto account_until = [&](int64_t t_ns) {
    if (t_ns <= cursor_ns) return;
    account(cursor_ns, t_ns, interval, shares);
    cursor_ns = t_ns;
  };
  walk(
      *all, interval.end_ns,
      [&](const Item& item) {
        account_until(item.t0_ns);
        begin_item(item, interval, occurrences);
      },
      [&](const Item& item) {
        account_until(item.t1_ns);
        end_item(item);
        if (item.kind == ItemKind::kRecomputed) add_recomputed(item, interval, shares.parts);
      });
  account_until(interval.end_ns);
  // What was taken out of backward (gc, sync) may have been taken out of this.
  shares.parts.recompute_ns =
      std::min(shares.parts.recompute_ns, shares.phase_ns[static_cast<size_t>(Phase::kBackward)]);
}

// The stretches of forward that no module call covers, in order of time; they never overlap.
void Sweep::find_stretches(const std::vector<Item>& items, const Interval& interval) {
  stretches_.clear();
  MicroStep micro{.anchor_ns = interval.block_begin_ns};
  const auto anchor = [&micro](int64_t t_ns) { micro.anchor_ns = std::max(micro.anchor_ns, t_ns); };
  walk(
      items, interval.end_ns,
      [&](const Item& item) {
        if (item.kind == ItemKind::kZeroGrad) {
          anchor(item.t0_ns);
        } else if (item.training_fetch()) {
          micro.forward_live = false;
        } else if (item.is(Phase::kOptimizer)) {
          micro.forward_live = false;
          anchor(item.t0_ns);  // a closure's forward lies within
        } else if (training_forward(item)) {
          micro.forward_begun = true;
        } else if (item.is(Phase::kBackward)) {
          if (micro.backwards_open++ != 0) return;
          const bool live = micro.forward_live;
          if (live || !micro.forward_begun) {
            const int64_t from_ns = live ? micro.forward_end_ns : micro.anchor_ns;
            if (from_ns < item.t0_ns)
              stretches_.push_back({.t0_ns = from_ns,
                                    .t1_ns = item.t0_ns,
                                    .index = 0,
                                    .step = item.step,
                                    .phase = static_cast<uint8_t>(Phase::kForward),
                                    .flags = 0,
                                    .kind = live ? ItemKind::kLoss : ItemKind::kFunctionalForward});
          }
          micro.forward_live = false;
        }
      },
      [&](const Item& item) {
        if (item.training_fetch()) {
          micro.forward_live = false;
          anchor(item.t1_ns);
        } else if (item.is(Phase::kOptimizer)) {
          micro.forward_live = false;
          anchor(item.t1_ns);
        } else if (training_forward(item)) {
          micro.forward_live = micro.backwards_open == 0 && !item.has(kSpanRaised);
          micro.forward_end_ns = item.t1_ns;
        } else if (item.is(Phase::kBackward)) {
          --micro.backwards_open;
          anchor(item.t1_ns);
        }
      });
}

void Sweep::begin_item(const Item& item, const Interval& interval,
                       std::vector<Occurrence>& occurrences) {
  drop_ended(whole_, item.t0_ns);
  drop_ended(plain_, item.t0_ns);
  if (is_span(item)) {
    note_occurrence(item, interval, occurrences);
    Item owner = item;
    if (item.is(Phase::kInput)) {
      const Item* outer = innermost(plain_);
      const bool in_input = outer != nullptr && outer->is(Phase::kInput);
      if (item.has(kSpanNotTraining) && !in_input)
        owner.phase = static_cast<uint8_t>(Phase::kOther);
      if (!item.has(kSpanNotTraining) && !in_input && whole_.empty())
        note_epoch_start(item, interval, occurrences);
    }
    (is_taken(item) ? taken_ : is_whole(item) ? whole_ : plain_).push_back(owner);
  }
  if (!whole_.empty()) return;
  if (item.training_fetch()) {
    place_ = Place::kBeforeForward;
  } else if (training_forward(item)) {
    place_ = Place::kAfterForward;
  } else if (item.is(Phase::kOptimizer) || item.kind == ItemKind::kSkipped) {
    place_ = Place::kAfterOptimizer;
  }
}

void Sweep::end_item(const Item& item) {
  drop_ended(whole_, item.t1_ns);
  if (!whole_.empty()) return;
  if (item.is(Phase::kBackward)) place_ = Place::kAfterBackward;
  if (item.is(Phase::kOptimizer)) place_ = Place::kAfterOptimizer;
}

// Only the outermost span of a kind is an occurrence: a compile within a compile is a part of it.
void Sweep::note_occurrence(const Item& item, const Interval& interval,
                            std::vector<Occurrence>& occurrences) {
  OccurrenceKind kind{};
  if (item.is(Phase::kCheckpoint))
    kind = OccurrenceKind::kCheckpoint;
  else if (item.is(Phase::kValidation))
    kind = OccurrenceKind::kValidation;
  else if (item.is(Phase::kCompile))
    kind = OccurrenceKind::kCompile;
  else if (item.is(Phase::kProfiler))
    kind = OccurrenceKind::kProfiler;
  else
    return;
  int64_t& covered_until_ns = covered_until_[static_cast<size_t>(kind)];
  const bool outermost = item.t0_ns >= covered_until_ns;
  covered_until_ns = std::max(covered_until_ns, item.t1_ns);
  if (outermost && item.t1_ns <= interval.end_ns)
    occurrences.push_back(
        {.rank = 0, .kind = kind, .step = item.step, .begin_ns = item.t0_ns, .end_ns = item.t1_ns});
}

// A loader's start and the first fetch after it make one occurrence; what lies between them is not
// its cost.
void Sweep::note_epoch_start(const Item& item, const Interval& interval,
                             std::vector<Occurrence>& occurrences) {
  if (item.t1_ns > interval.end_ns) return;
  const bool flagged = item.has(kSpanEpochStart);
  if (flagged && !iter_waiting_) {
    iter_waiting_ = true;
    iter_ns_ = item.t1_ns - item.t0_ns;
    return;
  }
  if (!iter_waiting_) return;
  iter_waiting_ = false;
  const int64_t begin_ns = flagged ? item.t0_ns - iter_ns_ : item.t0_ns;
  const int64_t end_ns = flagged ? item.t1_ns : item.t0_ns + iter_ns_;
  occurrences.push_back({.rank = 0,
                         .kind = OccurrenceKind::kEpochStart,
                         .step = item.step,
                         .begin_ns = begin_ns,
                         .end_ns = end_ns});
}

void Sweep::give_back_memory() {
  for (std::vector<Item>* buffer : {&stretches_, &merged_, &taken_, &whole_, &plain_})
    std::vector<Item>().swap(*buffer);
  std::vector<uint32_t>().swap(open_);
}

void Sweep::drop_ended(std::vector<Item>& stack, int64_t now_ns) {
  while (!stack.empty() && stack.back().t1_ns <= now_ns) stack.pop_back();
}

void Sweep::account(int64_t from_ns, int64_t to_ns, const Interval& interval, Shares& shares) {
  const int64_t took_ns = to_ns - from_ns;
  for (std::vector<Item>* stack : {&taken_, &whole_, &plain_}) {
    drop_ended(*stack, from_ns);
    if (stack->empty()) continue;
    const Item& owner = stack->back();
    if (owner.phase >= kFirstUserPhase) {
      const size_t user = owner.phase - kFirstUserPhase;
      shares.user_ns[user] += took_ns;
      shares.users |= uint64_t{1} << user;
      return;
    }
    if (owner.phase == static_cast<uint8_t>(Phase::kOther)) break;
    shares.phase_ns[owner.phase] += took_ns;
    if (owner.kind == ItemKind::kLoss) shares.parts.loss_ns += took_ns;
    if (owner.is(Phase::kInput) && owner.has(kSpanEpochStart))
      shares.parts.epoch_start_ns += took_ns;
    return;
  }
  shares.phase_ns[static_cast<size_t>(Phase::kOther)] += took_ns;
  StepParts& parts = shares.parts;
  if (from_ns < interval.block_begin_ns)
    parts.other_between_steps_ns += took_ns;
  else if (place_ == Place::kBeforeForward)
    parts.other_before_forward_ns += took_ns;
  else if (place_ == Place::kAfterBackward)
    parts.other_after_backward_ns += took_ns;
  else if (place_ == Place::kAfterOptimizer)
    parts.other_after_optimizer_ns += took_ns;
}

}  // namespace stepscope::agent
