#include "agent/timeline.h"

#include <algorithm>

#include "model/facts.h"

namespace stepscope::agent {
namespace {

using wire::EventCode;

// More samples in a batch are no count; sums of these cannot overflow.
constexpr uint64_t kMaxSamples = uint64_t{1} << 40;

int raised(const ring::EventValue& event) { return event.has(wire::kRaised) ? kSpanRaised : 0; }

Record step_record(const ClosedStep& step, uint64_t index) {
  return {.index = index,
          .t0_ns = step.begin_ns,
          .t1_ns = step.end_ns,
          .step = step.step,
          .kind = RecordKind::kStep,
          .flags = step.flags,
          .samples = step.samples,
          .counts = step.counts};
}

}  // namespace

void Timeline::push(const ring::EventValue& event, std::vector<Record>& out) {
  if (event.missing > 0) missed();
  if (event.device != wire::kHostClock) return;
  if (!is_time(event.t_ns)) return missed();
  out_ = &out;
  index_ = event.index;
  t_ns_ = std::max(event.t_ns, s_.last_ns);
  apply(event);
  s_.last_ns = t_ns_;
}

void Timeline::finish(uint64_t index, std::vector<Record>& out) {
  out_ = &out;
  index_ = index;
  t_ns_ = s_.last_ns;
  s_.clock.finish(s_.last_ns);
  settle();
}

void Timeline::missed() {
  forget_open();
  flag_incomplete();
}

void Timeline::flag_incomplete() { s_.clock.flag_step(kStepIncomplete); }

void Timeline::forget_open() {
  s_.stack.clear();
  s_.sync_depth = 0;
  s_.loader_started = false;
  s_.clock.forget_open();
}

Record Timeline::in_progress() const { return step_record(s_.clock.in_progress(), index_); }

Now Timeline::now() const {
  const OpenSpan* top = s_.stack.top();
  const Phase outside = s_.clock.in_validation() ? Phase::kValidation : Phase::kOther;
  return {.phase = top != nullptr ? top->phase : static_cast<uint8_t>(outside),
          .step = s_.clock.step(),
          .since_ns = s_.since_ns};
}

void Timeline::apply(const ring::EventValue& event) {
  StepClock& clock = s_.clock;
  const bool grad_on = event.has(wire::kGradOn);
  switch (event.code) {
    case EventCode::kLoader:  // stand in segments of their own: see LoaderFold
    case EventCode::kLoaderWorker:
    case EventCode::kLoaderStarted:
    case EventCode::kLoaderPart:
    case EventCode::kLoaderBatches:
    case EventCode::kLoaderTaken:
    case EventCode::kLoaderEpoch:
    case EventCode::kLoaderName:
    case EventCode::kNone:
      return;
    case EventCode::kIterBegin:
      return iter_begin(event.a, grad_on);
    case EventCode::kIterEnd:
      if (clock.iter_end()) close(Phase::kInput, raised(event));
      return;
    case EventCode::kFetchBegin:
      return fetch_begin(event.a, grad_on);
    case EventCode::kFetchEnd:
      return fetch_end(event);
    case EventCode::kForwardBegin:
      if (!clock.forward_begin(grad_on, event.has(wire::kTrainingMode), t_ns_)) return;
      settle();
      s_.facts |= kFactRootModule;
      trains();
      return open(Phase::kForward, grad_on ? 0 : kSpanEvalForward);
    case EventCode::kForwardEnd:
      if (clock.forward_end(event.has(wire::kRaised), t_ns_)) close(Phase::kForward, raised(event));
      return;
    case EventCode::kBackwardBegin:
      if (!clock.backward_begin(t_ns_)) return;
      settle();
      trains();
      s_.backward_sync = event.a;
      return open(Phase::kBackward);
    case EventCode::kBackwardEnd:
      return backward_end(event);
    case EventCode::kOptimizerBegin: {
      trains();
      const bool is_span = clock.optimizer_begin(event.a, t_ns_);
      settle();
      if (is_span) open(Phase::kOptimizer);
      return;
    }
    case EventCode::kOptimizerEnd: {
      const bool is_span = clock.optimizer_end(event.a, t_ns_);
      settle();
      if (is_span) close(Phase::kOptimizer, 0);
      return;
    }
    case EventCode::kOptimizerSkipped:
      clock.optimizer_skipped(t_ns_);
      settle();
      return mark(RecordKind::kOptimizerSkipped, t_ns_);
    case EventCode::kZeroGrad:
      clock.zero_grad(t_ns_);
      return mark(RecordKind::kZeroGrad, t_ns_);
    case EventCode::kEvalCalled:
      clock.eval_called(t_ns_);
      settle();
      return change();
    case EventCode::kTrainCalled:
      clock.train_called(t_ns_);
      settle();
      return change();
    case EventCode::kSyncBegin:
      return sync_begin(event);
    case EventCode::kSyncEnd:
      return sync_end();
    case EventCode::kPhaseBegin:
      if (event.phase == static_cast<uint8_t>(Phase::kCompile)) clock.flag_step(kStepCompiled);
      return open(event.phase, 0);
    case EventCode::kPhaseEnd:
      return close(event.phase, raised(event));
    case EventCode::kPhaseCancel:
      if (OpenSpan span; s_.stack.pop(event.phase, span)) change();
      return;
    case EventCode::kProfilerWindow:
      return clock.flag_steps(kStepProfiled, event.has(wire::kOpen));
    case EventCode::kStepEnter:
      trains();
      return step_enter();
    case EventCode::kStepExit:
      if (!clock.exit_step(event.has(wire::kRaised), t_ns_)) return;
      settle();
      return change();
    case EventCode::kSamples:
      if (event.a <= kMaxSamples) clock.add_samples(event.a);
      return;
    case EventCode::kRecomputed:
      return recomputed(event.a);
    case EventCode::kResumed:
      forget_open();
      if (event.a == wire::kAfterPause)
        clock.flag_step(kStepPaused);
      else
        start_over();
      return change();
  }
}

// --- what is written

void Timeline::open(uint8_t phase, int flags) {
  s_.stack.push(phase, static_cast<uint8_t>(flags), t_ns_);
  change();
}

void Timeline::close(uint8_t phase, int flags) {
  OpenSpan span;
  if (!s_.stack.pop(phase, span)) return;
  write(RecordKind::kSpan, phase, span.t0_ns, t_ns_, span.flags | flags);
  change();
}

void Timeline::write(RecordKind kind, uint8_t phase, int64_t t0_ns, int64_t t1_ns, int flags) {
  out_->push_back({.index = index_,
                   .t0_ns = t0_ns,
                   .t1_ns = t1_ns,
                   .step = s_.clock.step(),
                   .kind = kind,
                   .phase = phase,
                   .flags = static_cast<uint8_t>(flags)});
}

void Timeline::write_sync(uint64_t sync, bool together, int64_t ready_ns) {
  write(RecordKind::kSync, uint8_t{0}, ready_ns, t_ns_, together ? kSyncTogether : 0);
  out_->back().sync = sync;
}

void Timeline::write_decided() {
  const Decided& d = s_.clock.decided();
  // When such a step raised is not known: not after the last thing that was seen.
  for (int i = 0; i < d.dropped_optimizers; ++i) {
    OpenSpan span;
    if (!s_.stack.pop(static_cast<uint8_t>(Phase::kOptimizer), span)) break;
    write(RecordKind::kSpan, Phase::kOptimizer, span.t0_ns, std::max(s_.last_ns, span.t0_ns),
          span.flags | kSpanRaised);
  }
  if (d.validation_ended)
    write(RecordKind::kSpan, Phase::kValidation, d.validation_begin_ns, d.validation_end_ns);
  if (d.step_began) mark(RecordKind::kStepBegin, d.step_begin_ns);
  for (size_t i = 0; i < d.steps; ++i) out_->push_back(step_record(d.step[i], index_));
  s_.clock.clear();
}

// Another thread trains: what was seen so far was not training. A loader that somebody else fetches
// from is not measured.
void Timeline::start_over() {
  const uint32_t step = s_.clock.step();
  s_.clock = StepClock{};
  s_.clock.number_from(step);
  s_.loader_seen = false;
}

// --- events that are more than a begin or an end

void Timeline::iter_begin(uint64_t loader, bool grad_on) {
  if (!s_.clock.iter_begin(loader, grad_on, t_ns_)) return;
  settle();
  s_.loader_seen = true;
  s_.started_loader = loader;
  s_.loader_started = true;
  const bool training = grad_on && !s_.clock.in_validation();
  open(Phase::kInput, kSpanEpochStart | (training ? 0 : kSpanNotTraining));
}

void Timeline::fetch_begin(uint64_t loader, bool grad_on) {
  const FetchKind kind = s_.clock.fetch_begin(loader, grad_on, t_ns_);
  if (kind == FetchKind::kNested) return;
  settle();
  s_.loader_seen = true;
  int flags = kind == FetchKind::kTraining ? 0 : kSpanNotTraining;
  if (s_.loader_started && s_.started_loader == loader) {
    flags |= kSpanEpochStart;
    s_.loader_started = false;
  }
  open(Phase::kInput, flags);
}

void Timeline::fetch_end(const ring::EventValue& event) {
  const FetchEnd how = event.has(wire::kExhausted) ? FetchEnd::kExhausted
                       : event.has(wire::kRaised)  ? FetchEnd::kRaised
                                                   : FetchEnd::kBatch;
  const uint64_t samples = event.a <= kMaxSamples ? event.a : wire::kUnmeasured;
  if (!s_.clock.fetch_end(how, samples, t_ns_)) return;
  close(Phase::kInput, how == FetchEnd::kExhausted ? kSpanExhausted : raised(event));
}

// Where all local work was done the wait for the other ranks began.
void Timeline::backward_end(const ring::EventValue& event) {
  if (!s_.clock.backward_end(event.has(wire::kRaised), t_ns_)) return;
  OpenSpan span;
  const bool was_open = s_.stack.pop(static_cast<uint8_t>(Phase::kBackward), span);
  if (event.has(wire::kReduced) && !event.has(wire::kRaised)) {
    if (event.a == 0) {
      s_.facts |= kFactReadyNotMeasured;
    } else if (was_open) {
      const auto ready_ns = static_cast<int64_t>(std::min(event.a, static_cast<uint64_t>(t_ns_)));
      const int64_t waits_ns = std::max(ready_ns, span.t0_ns);
      write(RecordKind::kSpan, Phase::kSync, waits_ns, t_ns_);
      write_sync(s_.backward_sync, true, waits_ns);
    }
  }
  if (was_open) {
    write(RecordKind::kSpan, Phase::kBackward, span.t0_ns, t_ns_, span.flags | raised(event));
    change();
  }
  settle();
}

// How long in all; where in the backward is not known, and no view needs it.
void Timeline::recomputed(uint64_t ns) {
  const OpenSpan* top = s_.stack.top();
  if (top == nullptr || top->phase != static_cast<uint8_t>(Phase::kBackward)) return;
  const auto longest_ns = static_cast<uint64_t>(t_ns_ - top->t0_ns);
  write(RecordKind::kRecomputed, Phase::kBackward,
        t_ns_ - static_cast<int64_t>(std::min(ns, longest_ns)), t_ns_);
}

void Timeline::sync_begin(const ring::EventValue& event) {
  if (s_.sync_depth++ > 0) return;
  s_.sync_begin_ns = t_ns_;
  s_.sync = event.a;
  s_.sync_together = event.has(wire::kTogether);
  open(Phase::kSync);
}

void Timeline::sync_end() {
  if (s_.sync_depth == 0 || --s_.sync_depth > 0) return;
  write(RecordKind::kSpan, Phase::kSync, s_.sync_begin_ns, t_ns_);
  write_sync(s_.sync, s_.sync_together, s_.sync_begin_ns);
  OpenSpan span;
  s_.stack.pop(static_cast<uint8_t>(Phase::kSync), span);
  change();
}

void Timeline::step_enter() {
  s_.facts |= kFactExplicitSteps;
  if (!s_.clock.enter_step(t_ns_)) return;
  const bool marked = s_.clock.decided().step_began;
  settle();
  if (!marked) mark(RecordKind::kStepBegin, t_ns_);
  change();
}

}  // namespace stepscope::agent
