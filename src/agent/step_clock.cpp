#include "agent/step_clock.h"

#include <algorithm>

namespace stepscope::agent {
namespace {

int32_t saturated(uint32_t n) { return static_cast<int32_t>(std::min<uint32_t>(n, INT32_MAX)); }

}  // namespace

void StepClock::Tally::add(const Tally& other) {
  backwards += other.backwards;
  optimizer_steps += other.optimizer_steps;
  skipped += other.skipped;
  flags |= other.flags;
}

// --- input

bool StepClock::iter_begin(uint64_t id, bool grad_on, int64_t t_ns) {
  if (input_depth_++ > 0) return false;
  Loader& loader = loaders_.find(id);
  loaders_.iter_begun(loader);
  loader_start_ns_ = t_ns;
  starting_ = id;
  if (!grad_on)
    begin_validation(t_ns, false);
  else if (validation_.on && !validation_.by_eval)
    loader_starts_in_validation(loader, t_ns);
  loader.iteration_validation = validation_.on ? validation_.number : 0;
  if (validation_.on) return true;
  if (step_ == 0 && begun_ && !explicit_ && loader.step_fetches > 0 && tally_.backwards == 0 &&
      !optimizer_done_ && boundary_count_ == 0) {
    // What was fetched so far was a peek: the first step begins with the next fetch.
    begun_ = fetch_seen_ = failed_ = false;
    loader.fetches_since_backward = loader.fetches_without_backward = 0;
    loaders_.step_closed(false);
  }
  return true;
}

FetchKind StepClock::fetch_begin(uint64_t id, bool grad_on, int64_t t_ns) {
  if (input_depth_++ > 0) return FetchKind::kNested;
  if (forward_depth_ == 0 && backward_depth_ == 0 && optimizers_.surely_raised())
    drop_optimizers(optimizers_.drop_all());
  Loader& loader = loaders_.find(id);
  fetching_ = id;
  fetch_counts_ = fetch_is_candidate_ = false;
  if (validation_.on && validation_.perhaps_teacher) {
    validation_.perhaps_teacher = false;
    loaders_.absorb(validation_.number);
  }
  FetchKind kind = FetchKind::kNotTraining;
  if (!grad_on) {
    begin_validation(t_ns, false);
    activity(t_ns);
    loader.validation = validation_.number;
    validation_.candidate = {};
  } else if (validation_.on && fetch_stays_validation(loader, t_ns)) {
    if (loader.state == LoaderState::kTraining) kind = FetchKind::kTraining;
  } else {
    fetch_counts_ = true;
    loaders_.review(loader);
    if (loader.state != LoaderState::kForgotten) {
      training_fetch(loader, t_ns);
      kind = FetchKind::kTraining;
    } else if (not_training_since_ns_ == 0) {
      not_training_since_ns_ = start_of(loader, t_ns);
    }
    loaders_.fetched(loader);
  }
  loader_start_ns_ = 0;
  return kind;
}

// States of the optimizer, made by a step before anything was computed, are no training step.
void StepClock::forget_preparation() {
  if (step_ > 0 || !begun_ || begin_missed_ || explicit_ || fetch_seen_ || boundary_count_ > 0)
    return;
  if (tally_.backwards > 0 || steps_since_root_ < 2 || !optimizers_.empty()) return;
  begun_ = false;
  reset_step();
}

void StepClock::training_fetch(Loader& loader, int64_t t_ns) {
  forget_preparation();
  if (loader.state == LoaderState::kTraining)
    not_training_since_ns_ = 0;
  else if (not_training_since_ns_ == 0)
    not_training_since_ns_ = start_of(loader, t_ns);
  boundary_at_fetch(t_ns);
  const bool first = step_ == 0 && !fetch_seen_ && !optimizer_done_ && boundary_count_ == 0;
  if (!begun_ || (first && !explicit_)) begin_step(t_ns);
  fetch_seen_ = true;
}

bool StepClock::fetch_end(FetchEnd how, uint64_t samples, int64_t t_ns) {
  if (input_depth_ > 0 && --input_depth_ > 0) return false;
  if (validation_.on && validation_.last_activity_ns != 0) validation_.last_activity_ns = t_ns;
  const bool unknown = samples == wire::kUnmeasured;
  if (fetch_is_candidate_) {
    Candidate& c = validation_.candidate;
    c.exhausted |= how == FetchEnd::kExhausted;
    // From its iterator to its end within this validation: evaluated, not trained on.
    if (c.exhausted && loaders_.find(fetching_).iteration_validation == validation_.number) c = {};
    if (how == FetchEnd::kBatch) {
      ++c.batches;
      c.samples_unknown |= unknown;
      c.samples += unknown ? 0 : samples;
    }
  }
  if (!fetch_counts_) return true;
  Loader& loader = loaders_.find(fetching_);
  if (how == FetchEnd::kExhausted) loaders_.exhausted(loader);
  if (how == FetchEnd::kBatch) {
    LoaderMemory::add_batch(loader, 1, unknown ? 0 : samples, unknown);
    batch_since_optimizer_ |= loader.state == LoaderState::kTraining;
  }
  return true;
}

// --- forward and backward

bool StepClock::forward_begin(bool grad_on, bool training_mode, int64_t t_ns) {
  // Checkpointing computes forward again: that is backward's time. A dataset asks a model: the fetch's.
  if (backward_depth_ > 0 || (input_depth_ > 0 && !grad_on)) {
    ++forward_inside_;
    return false;
  }
  if (forward_depth_++ > 0) return false;
  optimizers_.work_begun();
  loader_start_ns_ = 0;
  if (!grad_on) {
    forward_without_gradients(t_ns);
    return true;
  }
  forget_preparation();
  forward_seen_ = true;
  steps_since_root_ = 0;
  if (validation_.on && !training_mode) {
    activity(t_ns);
    validation_.pending_forward_ns = t_ns;
    return true;
  }
  if (validation_.on) resolve_validation(Evidence::kTrainForward, t_ns);
  not_training_since_ns_ = 0;
  boundary_at_forward(t_ns);
  begin_if_needed(t_ns);
  return true;
}

bool StepClock::forward_end(bool forward_raised, int64_t t_ns) {
  if (forward_inside_ > 0) {
    --forward_inside_;
    return false;
  }
  if (forward_depth_ == 0 || --forward_depth_ > 0) return false;
  optimizers_.work_ended(forward_raised);
  if (validation_.on)
    validation_.last_activity_ns = t_ns;
  else if (forward_raised)
    raised();
  return true;
}

bool StepClock::backward_begin(int64_t t_ns) {
  if (backward_depth_++ > 0) return false;
  optimizers_.work_begun();
  loader_start_ns_ = 0;
  if (validation_.on) resolve_validation(Evidence::kBackward, t_ns);
  not_training_since_ns_ = 0;
  if (!forward_seen_ && steps_since_root_ >= 2) unseen_forward(t_ns);
  begin_if_needed(t_ns);
  loaders_.backward();
  ++tally_.backwards;
  backward_since_boundary_ = true;
  return true;
}

bool StepClock::backward_end(bool backward_raised, int64_t t_ns) {
  if (backward_depth_ == 0 || --backward_depth_ > 0) return false;
  forward_inside_ = 0;
  forward_seen_ = false;
  backward_end_ns_ = t_ns;
  optimizers_.work_ended(backward_raised);
  if (backward_raised) raised();
  return true;
}

// No root module was called: forward began at zero_grad, or, when that came just before backward,
// at the end of what was before.
void StepClock::unseen_forward(int64_t t_ns) {
  const int64_t before = std::max(optimizer_end_ns_, backward_end_ns_);
  int64_t begin = before != 0 ? before : t_ns;
  if (zero_grad_ns_ > before &&
      (before == 0 || t_ns - zero_grad_ns_ >= (zero_grad_ns_ - before + 9) / 10))
    begin = zero_grad_ns_;
  boundary_at_forward(begin);
}

// --- optimizer

void StepClock::optimizer_event() {
  if (noted_unseen_) merge_provisional();
  most_cycles_ = std::max(most_cycles_, cycles_);
  cycles_ = 0;
  optimizer_seen_ = true;
  unseen_optimizer_ = false;
}

bool StepClock::optimizer_begin(uint64_t optimizer, int64_t t_ns) {
  if (validation_.on) resolve_validation(Evidence::kBackward, t_ns);
  loader_start_ns_ = 0;
  optimizer_event();
  const OptimizerStack::Begun begun = optimizers_.begin(optimizer, t_ns);
  if (begun.dropped > 0) drop_optimizers(begun.dropped);
  begin_if_needed(t_ns);
  return begun.is_span;
}

bool StepClock::optimizer_end(uint64_t optimizer, int64_t t_ns) {
  const OptimizerStack::Ended ended = optimizers_.end(optimizer);
  if (ended.dropped > 0) drop_optimizers(ended.dropped);
  if (!ended.is_span) return false;
  if (ended.outermost) {
    ++tally_.optimizer_steps;
    optimizer_end_ns_ = t_ns;
  }
  optimizer_done();
  return true;
}

void StepClock::optimizer_skipped(int64_t t_ns) {
  optimizer_event();
  begin_if_needed(t_ns);
  ++tally_.skipped;
  optimizer_end_ns_ = t_ns;
  optimizer_done();
}

void StepClock::optimizer_done() {
  optimizer_done_ = optimizer_since_boundary_ = true;
  batch_since_optimizer_ = false;
}

void StepClock::drop_optimizers(size_t count) {
  decided_.any = true;
  decided_.dropped_optimizers = static_cast<uint8_t>(decided_.dropped_optimizers + count);
  raised();
}

void StepClock::raised() {
  failed_ = true;
  loaders_.failed();
}

// --- explicit steps

bool StepClock::enter_step(int64_t t_ns) {
  if (!explicit_) merge_provisional();
  explicit_ = true;
  if (step_depth_++ > 0) return false;
  begin_if_needed(t_ns);
  return true;
}

bool StepClock::exit_step(bool block_raised, int64_t t_ns) {
  // Without an entry: it happened while recording was paused.
  if (step_depth_ == 0 && (!begun_ || !explicit_ || (tally_.flags & kStepPaused) == 0))
    return false;
  if (step_depth_ > 0 && --step_depth_ > 0) return false;
  if (const size_t open = optimizers_.drop_all(); open > 0) drop_optimizers(open);
  if (block_raised) raised();
  close(t_ns);
  return true;
}

void StepClock::add_samples(uint64_t samples) {
  has_extra_samples_ = true;
  extra_samples_ += samples;
}
void StepClock::flag_steps(uint8_t step_flags, bool on) {
  tally_.flags |= step_flags;
  if (on)
    lasting_flags_ |= step_flags;
  else
    lasting_flags_ &= static_cast<uint8_t>(~step_flags);
}

void StepClock::forget_open() {
  begin_missed_ |= step_ == 0;
  input_depth_ = forward_depth_ = backward_depth_ = forward_inside_ = step_depth_ = 0;
  fetch_counts_ = fetch_is_candidate_ = forward_seen_ = batch_since_optimizer_ = false;
  not_training_since_ns_ = loader_start_ns_ = 0;
  optimizers_.drop_all();
  validation_.on = false;
}

// --- boundaries

void StepClock::begin_step(int64_t t_ns) {
  begun_ = true;
  begin_ns_ = t_ns;
  tally_ = {.flags = static_cast<uint8_t>(tally_.flags | lasting_flags_)};
  backward_since_boundary_ = false;
  decided_.any = decided_.step_began = true;
  decided_.step_begin_ns = t_ns;
}

// A backward was not followed by an optimizer step, in a loop that never had one, or that usually
// had one at once: it may be compiled by now.
bool StepClock::unseen_cycle() {
  if (!backward_since_boundary_ || !optimizers_.empty()) return false;  // or a closure's
  if (cycles_ < UINT32_MAX) ++cycles_;
  return !optimizer_seen_ || most_cycles_ <= kUsualCycles;
}

void StepClock::boundary_at_fetch(int64_t t_ns) {
  if (explicit_ || !begun_) return;
  if (optimizer_done_ || failed_) {
    close(t_ns);
  } else if (unseen_cycle()) {
    if (unseen_optimizer_) return close(t_ns);
    noted_unseen_ = true;
    provisional(t_ns);
  }
}

void StepClock::boundary_at_forward(int64_t t_ns) {
  if (explicit_ || !begun_) return;
  if (!optimizers_.empty()) t_ns = optimizers_.outermost_begin_ns();
  t_ns = std::max(t_ns, begin_ns_);
  if (loaders_.training_fetch_in_step()) {
    if (!optimizer_since_boundary_ || failed_) return;
    if (loaders_.only_ends_in_step()) return close(t_ns, true);  // its batches are used again
    provisional(t_ns);
  } else if (optimizer_done_ || failed_) {
    close(t_ns, true);
  } else if (unseen_cycle()) {
    if (unseen_optimizer_) return close(t_ns, true);
    noted_unseen_ = true;
    provisional(t_ns);
  }
}

void StepClock::close(int64_t t_ns, bool at_forward) {
  merge_provisional();
  push(std::max(t_ns, begin_ns_), tally_, loaders_.totals());
  reset_step(at_forward);
}

void StepClock::provisional(int64_t t_ns) {
  boundaries_[boundary_count_++] = {t_ns, tally_, loaders_.totals()};
  tally_ = {.flags = lasting_flags_};
  optimizer_since_boundary_ = backward_since_boundary_ = false;
  if (boundary_count_ == kProvisional) give_out_provisional();
}

void StepClock::give_out_provisional() {
  unseen_optimizer_ = noted_unseen_;
  BatchTotals before;
  for (const Boundary& b : boundaries_) {
    BatchTotals own = b.batches;
    own.batches -= std::min(own.batches, before.batches);
    own.samples -= std::min(own.samples, before.samples);
    own.samples_known &= own.batches > 0;  // a batch used again was not fetched again
    push(std::max(b.t_ns, begin_ns_), b.tally, own);
    before = b.batches;
  }
  reset_step();
}

void StepClock::merge_provisional() {
  for (size_t i = 0; i < boundary_count_; ++i) tally_.add(boundaries_[i].tally);
  boundary_count_ = 0;
  noted_unseen_ = false;
}

ClosedStep StepClock::closed(int64_t end_ns, const Tally& tally, const BatchTotals& batches) const {
  const bool known = batches.samples_known || has_extra_samples_;
  const uint8_t flags = static_cast<uint8_t>(tally.flags | (failed_ ? kStepFailed : 0) |
                                             (explicit_ ? kStepExplicit : 0));
  return {.step = step_,
          .flags = flags,
          .begin_ns = begin_ns_,
          .end_ns = end_ns,
          .samples = known ? batches.samples + extra_samples_ : wire::kUnmeasured,
          .counts = {saturated(batches.batches), saturated(tally.backwards),
                     saturated(tally.optimizer_steps), saturated(tally.skipped)}};
}

ClosedStep StepClock::in_progress() const {
  Tally tally = tally_;
  for (size_t i = 0; i < boundary_count_; ++i) tally.add(boundaries_[i].tally);
  return closed(begin_ns_, tally, loaders_.totals());
}

void StepClock::push(int64_t end_ns, const Tally& tally, const BatchTotals& batches) {
  if (decided_.steps < Decided::kMaxSteps)
    decided_.step[decided_.steps++] = closed(end_ns, tally, batches);
  decided_.any = true;
  ++step_;
  begin_ns_ = end_ns;
  extra_samples_ = 0;
  has_extra_samples_ = false;
  if (steps_since_root_ < 2) ++steps_since_root_;
}

void StepClock::reset_step(bool at_forward) {
  tally_ = {.flags = lasting_flags_};
  boundary_count_ = 0;
  optimizer_done_ = failed_ = optimizer_since_boundary_ = backward_since_boundary_ = false;
  loaders_.step_closed(at_forward);
}

void StepClock::clear() {
  decided_.any = decided_.validation_ended = decided_.step_began = false;
  decided_.dropped_optimizers = 0;
  decided_.steps = 0;
}

}  // namespace stepscope::agent
