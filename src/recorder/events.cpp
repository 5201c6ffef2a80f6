// The hot path: one clock read a call, one record at the end of a span.
#include <algorithm>

#include "base/clock.h"
#include "recorder/recorder.h"

namespace stepscope::recorder {

// What every event begins and ends with. False: not recording, or not the step thread's.
class Recorder::Call {
 public:
  explicit Call(Recorder& recorder, bool binds = false) : recorder_(recorder) {
    const State state = recorder.state_.load(std::memory_order_relaxed);
    if (state == State::kOff || !recorder.mine(binds)) return;
    if (state == State::kResumed) {
      recorder.forget_open();
      recorder.clock_.flag_step(wire::kStepPaused);
    }
    if (--recorder.until_sample_ == 0) {
      recorder.until_sample_ = wire::kCostEvery;
      sampled_from_ns_ = monotonic_ns();
    }
    t_ns = monotonic_ns();
  }
  ~Call() {
    if (t_ns != 0) recorder_.last_event_ns_ = t_ns;
    if (sampled_from_ns_ != 0) count_cost();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  explicit operator bool() const { return t_ns != 0; }

  int64_t t_ns = 0;

 private:
  // Without what asking costs. A longer call was interrupted: that is the machine's load and not
  // our cost, and 61 times it would hide all else.
  void count_cost() {
    constexpr int64_t kLongestNs = 20'000;
    wire::WriterLine& line = recorder_.writer_.head().writer;
    const int64_t cost = monotonic_ns() - sampled_from_ns_ - recorder_.clock_cost_ns_;
    line.cost_ns.fetch_add(static_cast<uint64_t>(std::clamp<int64_t>(cost, 0, kLongestNs)),
                           std::memory_order_relaxed);
    line.cost_calls.fetch_add(1, std::memory_order_relaxed);
  }

  Recorder& recorder_;
  int64_t sampled_from_ns_ = 0;
};

// --- spans

void Recorder::push(uint8_t phase, int64_t t_ns, uint8_t flags) {
  stack_.push(phase, flags, t_ns);
  show_now(t_ns);
}

void Recorder::pop(uint8_t phase, int64_t t_ns, int flags, uint64_t a) {
  OpenSpan open;
  if (!stack_.pop(phase, open)) return;
  write({.t0_ns = open.t0_ns,
         .t1_ns = t_ns,
         .step = clock_.step(),
         .kind = wire::RecordKind::kSpan,
         .phase = phase,
         .flags = static_cast<uint8_t>(open.flags | flags),
         .a = a});
  show_now(t_ns);
}

void Recorder::show_now(int64_t t_ns) {
  const OpenSpan* top = stack_.top();
  const uint64_t phase =
      top != nullptr
          ? top->phase
          : static_cast<uint64_t>(clock_.in_validation() ? Phase::kValidation : Phase::kOther);
  wire::NowLine& now = writer_.head().now;
  now.since_ns.store(t_ns, std::memory_order_relaxed);
  now.phase_and_step.store(phase << 56 | clock_.step(), std::memory_order_relaxed);
}

void Recorder::mark(wire::MarkCode code, int64_t t_ns) {
  write({.t0_ns = t_ns,
         .t1_ns = t_ns,
         .step = clock_.step(),
         .kind = wire::RecordKind::kMark,
         .phase = static_cast<uint8_t>(code),
         .flags = 0});
}

void Recorder::sync_point(uint64_t group, int64_t ready_ns, int64_t leave_ns) {
  uint64_t number = wire::kUnmeasured;
  for (size_t i = 0; i < groups_.size(); ++i) {
    if (i == group_count_) groups_[group_count_++] = {.id = group};
    if (groups_[i].id != group) continue;
    number = groups_[i].points++;
    break;
  }
  write({.t0_ns = ready_ns,
         .t1_ns = leave_ns,
         .step = clock_.step(),
         .kind = wire::RecordKind::kSync,
         .phase = static_cast<uint8_t>(Phase::kSync),
         .flags = 0,
         .a = group,
         .b = number});
}

void Recorder::write_decided() {
  const Decided& d = clock_.decided();
  // When such a step raised is not known: not after the last thing that was seen.
  for (int i = 0; i < d.dropped_optimizers; ++i) {
    OpenSpan open;
    if (!stack_.pop(static_cast<uint8_t>(Phase::kOptimizer), open)) break;
    write({.t0_ns = open.t0_ns,
           .t1_ns = last_event_ns_ > open.t0_ns ? last_event_ns_ : open.t0_ns,
           .step = clock_.step(),
           .kind = wire::RecordKind::kSpan,
           .phase = static_cast<uint8_t>(Phase::kOptimizer),
           .flags = static_cast<uint8_t>(open.flags | wire::kSpanRaised)});
  }
  if (d.validation_ended)
    write({.t0_ns = d.validation_begin_ns,
           .t1_ns = d.validation_end_ns,
           .step = clock_.step(),
           .kind = wire::RecordKind::kSpan,
           .phase = static_cast<uint8_t>(Phase::kValidation),
           .flags = 0});
  else if (d.validation_began)
    mark(wire::MarkCode::kValidationBegin, d.validation_begin_ns);
  if (d.step_began) mark(wire::MarkCode::kStepBegin, d.step_begin_ns);
  for (size_t i = 0; i < d.steps; ++i) {
    const ClosedStep& s = d.step[i];
    write({.t0_ns = s.begin_ns,
           .t1_ns = s.end_ns,
           .step = s.step,
           .kind = wire::RecordKind::kStep,
           .phase = 0,
           .flags = s.flags,
           .a = s.samples,
           .b = wire::pack(s.counts)});
  }
  if (d.steps > 0) read_control();
  clock_.clear();
}

void Recorder::read_control() {
  const uint32_t word = writer_.head().control.word.load(std::memory_order_relaxed);
  muted_ = word == static_cast<uint32_t>(wire::Control::kOff);
}

// --- input

void Recorder::iter_begin(uint64_t loader, bool grad_on) {
  Call call(*this);
  if (!call || !clock_.iter_begin(loader, grad_on, call.t_ns)) return;
  settle();
  set_fact(wire::kFactDataLoader);
  started_loader_ = loader;
  loader_started_ = true;
  const bool training = grad_on && !clock_.in_validation();
  push(Phase::kInput, call.t_ns,
       static_cast<uint8_t>(wire::kSpanEpochStart | (training ? 0 : wire::kSpanNotTraining)));
}

void Recorder::iter_end(bool raised) {
  Call call(*this);
  if (call && clock_.iter_end()) pop(Phase::kInput, call.t_ns, raised ? wire::kSpanRaised : 0);
}

void Recorder::fetch_begin(uint64_t loader, bool grad_on) {
  Call call(*this);
  if (!call) return;
  const FetchKind kind = clock_.fetch_begin(loader, grad_on, call.t_ns);
  if (kind == FetchKind::kNested) return;
  settle();
  set_fact(wire::kFactDataLoader);
  int flags = kind == FetchKind::kTraining ? 0 : wire::kSpanNotTraining;
  if (loader_started_ && started_loader_ == loader) {
    flags |= wire::kSpanEpochStart;
    loader_started_ = false;
  }
  push(Phase::kInput, call.t_ns, static_cast<uint8_t>(flags));
}

void Recorder::fetch_end(FetchEnd how, uint64_t samples) {
  Call call(*this);
  if (!call || !clock_.fetch_end(how, samples, call.t_ns)) return;
  const int flags = how == FetchEnd::kExhausted ? wire::kSpanExhausted
                    : how == FetchEnd::kRaised  ? wire::kSpanRaised
                                                : 0;
  pop(Phase::kInput, call.t_ns, flags, how == FetchEnd::kBatch ? samples : wire::kUnmeasured);
}

// --- forward, backward, optimizer

void Recorder::forward_begin(bool grad_on, bool training_mode) {
  Call call(*this);
  if (!call || !clock_.forward_begin(grad_on, training_mode, call.t_ns)) return;
  settle();
  set_fact(wire::kFactRootModule);
  push(Phase::kForward, call.t_ns, grad_on ? 0 : wire::kSpanEvalForward);
}

void Recorder::forward_end(bool raised) {
  Call call(*this);
  if (call && clock_.forward_end(raised, call.t_ns))
    pop(Phase::kForward, call.t_ns, raised ? wire::kSpanRaised : 0);
}

void Recorder::backward_begin() {
  Call call(*this, /*binds=*/true);
  if (!call || !clock_.backward_begin(call.t_ns)) return;
  settle();
  ready_ns_.store(0, std::memory_order_relaxed);
  in_backward_.store(true, std::memory_order_release);
  push(Phase::kBackward, call.t_ns);
}

void Recorder::ready() {
  if (!recording() || !in_backward_.load(std::memory_order_acquire)) return;
  ready_ns_.store(monotonic_ns(), std::memory_order_relaxed);
}

bool Recorder::backward_end(bool raised, bool reduced) {
  Call call(*this);
  if (!call || !clock_.backward_end(raised, call.t_ns)) return false;
  in_backward_.store(false, std::memory_order_relaxed);
  // Another thread may say ready after we looked at the clock.
  const int64_t ready_ns = std::min(ready_ns_.load(std::memory_order_relaxed), call.t_ns);
  if (reduced && !raised && ready_ns != 0)
    sync_point(0, ready_ns, call.t_ns);
  else if (reduced && !raised)
    set_fact(wire::kFactReadyNotMeasured);
  pop(Phase::kBackward, call.t_ns, raised ? wire::kSpanRaised : 0);
  settle();
  return ready_ns != 0;
}

void Recorder::optimizer_begin(uint64_t optimizer) {
  Call call(*this);
  if (!call) return;
  const bool is_span = clock_.optimizer_begin(optimizer, call.t_ns);
  settle();
  if (is_span) push(Phase::kOptimizer, call.t_ns);
}

void Recorder::optimizer_end(uint64_t optimizer) {
  Call call(*this);
  if (!call) return;
  const bool is_span = clock_.optimizer_end(optimizer, call.t_ns);
  settle();
  if (is_span) pop(Phase::kOptimizer, call.t_ns, 0);
}

void Recorder::optimizer_skipped() {
  Call call(*this);
  if (!call) return;
  clock_.optimizer_skipped(call.t_ns);
  settle();
  mark(wire::MarkCode::kOptimizerSkipped, call.t_ns);
}

void Recorder::zero_grad() {
  Call call(*this);
  if (!call) return;
  clock_.zero_grad(call.t_ns);
  mark(wire::MarkCode::kZeroGrad, call.t_ns);
}

void Recorder::eval_called() {
  Call call(*this);
  if (!call) return;
  clock_.eval_called(call.t_ns);
  settle();
  show_now(call.t_ns);
}

void Recorder::train_called() {
  Call call(*this);
  if (!call) return;
  clock_.train_called(call.t_ns);
  settle();
  show_now(call.t_ns);
}

// --- waiting for other ranks, other phases

void Recorder::sync_begin(uint64_t group) {
  Call call(*this);
  if (!call || sync_depth_++ > 0) return;
  sync_group_ = group;
  sync_begin_ns_ = call.t_ns;
  push(Phase::kSync, call.t_ns);
}

void Recorder::sync_end() {
  Call call(*this);
  if (!call || sync_depth_ == 0 || --sync_depth_ > 0) return;
  sync_point(sync_group_, sync_begin_ns_, call.t_ns);
  OpenSpan open;
  stack_.pop(static_cast<uint8_t>(Phase::kSync), open);  // the sync point is its record
  show_now(call.t_ns);
}

void Recorder::begin(uint8_t phase) {
  Call call(*this);
  if (!call) return;
  if (phase == static_cast<uint8_t>(Phase::kCompile)) clock_.flag_step(wire::kStepCompiled);
  push(phase, call.t_ns, 0);
}

void Recorder::end(uint8_t phase, bool raised) {
  Call call(*this);
  if (call) pop(phase, call.t_ns, raised ? wire::kSpanRaised : 0, wire::kUnmeasured);
}

void Recorder::cancel(uint8_t phase) {
  Call call(*this);
  OpenSpan open;
  if (call && stack_.pop(phase, open)) show_now(call.t_ns);
}

void Recorder::profiler_window(bool open) {
  Call call(*this);
  if (call) clock_.flag_steps(wire::kStepProfiled, open);
}

// --- explicit steps

void Recorder::enter_step() {
  Call call(*this, /*binds=*/true);
  if (!call) return;
  set_fact(wire::kFactExplicitSteps);
  if (!clock_.enter_step(call.t_ns)) return;
  const bool marked = clock_.decided().step_began;
  settle();
  if (!marked) mark(wire::MarkCode::kStepBegin, call.t_ns);
  show_now(call.t_ns);
}

void Recorder::exit_step(bool raised) {
  Call call(*this);
  if (!call || !clock_.exit_step(raised, call.t_ns)) return;
  settle();
  show_now(call.t_ns);
}

void Recorder::add_samples(uint64_t samples) {
  Call call(*this);
  if (call) clock_.add_samples(samples);
}

}  // namespace stepscope::recorder
