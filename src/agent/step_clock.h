// Decides from the order of events where a step ends, and what was validation. No clock and no I/O:
// times come in with the events of the step thread, what was decided comes out in Decided.
//
// Automatic steps close
//   (a) at the entry of the first training fetch, the exhausting one included, after an optimizer
//       step taken or skipped;
//   (b) only if the step has no training fetch, or none but a loader's end (itertools.cycle): at the
//       next root forward with gradients, or at the entry of the Optimizer.step that this forward
//       runs in. Where no root module is called, forward begins at zero_grad or the end of the last
//       optimizer step, known at backward;
//   (c) as failed, at the first training fetch after an exception left forward, backward or
//       optimizer; in a step without fetches at the next root forward with gradients.
// (d), the process's end, is the fold's. Explicit steps run from one trace_step exit to the next.
//
// Two loops show no boundary to these rules: one batch (or a kept list) used again and again, where
// a fetch forbids (b); and one whose optimizer cannot be seen (compiled into the step, or written
// by hand). For them boundaries are noted where a weaker rule would close, and when kProvisional of
// them came without a real one, all are given out and the weaker rule holds from then on. So
// n_critic or accumulation below kProvisional is not misread, and no step is lost.
// Known limit: several optimizers in one iteration *without* any fetch give a step each; trace_step
// tells them.
//
// Validation begins with eval() of a root, or a fetch or root forward with gradients off (but a
// forward without gradients between a training batch and its optimizer step is a teacher's and no
// validation). It ends at the next training fetch or root forward with gradients. After eval()
// neither is sure to be training, so it is ended in retrospect: by train(), a forward in training
// mode, a backward or an optimizer step, at the fetch or forward these belong to. What a model does
// inside a fetch is of the dataset that asks it, and begins and ends nothing.
//
// Thread safety: none, one owner. Bounded: fixed tables, trivially copyable, so that a copy of it is
// a point to go on from. Precondition: times are is_time() and never go back; everything else may be
// anything, in any order. Invariants: steps are numbered without gaps, each begins where the last
// one ended, begin <= end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "agent/loader_memory.h"
#include "agent/optimizer_stack.h"
#include "agent/record.h"

namespace stepscope::agent {

enum class FetchEnd : uint8_t { kBatch, kExhausted, kRaised };
enum class FetchKind : uint8_t { kNested, kTraining, kNotTraining };

struct ClosedStep {
  uint32_t step = 0;
  uint8_t flags = 0;  // StepFlags
  int64_t begin_ns = 0, end_ns = 0;
  uint64_t samples = 0;  // or wire::kUnmeasured
  StepCounts counts{};
};

// What events since the last clear() decided.
struct Decided {
  static constexpr size_t kMaxSteps = 24;
  bool any = false;
  bool validation_ended = false, step_began = false;
  // steps that turned out to have raised: open spans, innermost first
  uint8_t dropped_optimizers = 0;
  int64_t validation_begin_ns = 0, validation_end_ns = 0, step_begin_ns = 0;
  size_t steps = 0;
  std::array<ClosedStep, kMaxSteps> step{};
};

class StepClock {
 public:
  static constexpr size_t kProvisional = 16;
  // A loop that accumulated over more batches than this is not suspected of having compiled its
  // optimizer.
  static constexpr uint32_t kUsualCycles = 4;

  // The bools say whether the call makes a span: it is the outermost of its kind.
  bool iter_begin(uint64_t loader, bool grad_on, int64_t t_ns);
  bool iter_end() {
    if (input_depth_ > 0) --input_depth_;
    return input_depth_ == 0;
  }
  FetchKind fetch_begin(uint64_t loader, bool grad_on, int64_t t_ns);
  bool fetch_end(FetchEnd how, uint64_t samples, int64_t t_ns);
  bool forward_begin(bool grad_on, bool training_mode, int64_t t_ns);
  bool forward_end(bool raised, int64_t t_ns);
  bool backward_begin(int64_t t_ns);
  bool backward_end(bool raised, int64_t t_ns);
  bool optimizer_begin(uint64_t optimizer, int64_t t_ns);
  bool optimizer_end(uint64_t optimizer, int64_t t_ns);
  void optimizer_skipped(int64_t t_ns);
  void zero_grad(int64_t t_ns) { zero_grad_ns_ = t_ns; }
  void eval_called(int64_t t_ns);
  void train_called(int64_t t_ns);
  bool enter_step(int64_t t_ns);
  bool exit_step(bool raised, int64_t t_ns);
  void add_samples(uint64_t samples);  // counted besides those of the loaders
  void flag_step(uint8_t step_flags) { tally_.flags |= step_flags; }  // the step in progress
  void flag_steps(uint8_t step_flags, bool on);  // it, and as long as this is on all later ones
  void forget_open();         // events were missed: whatever was open is not any more
  void finish(int64_t t_ns);  // gives out a validation in progress; closes no step
  void number_from(uint32_t step) { step_ = step; }  // before the first event

  uint32_t step() const { return step_; }
  bool in_validation() const { return validation_.on; }
  ClosedStep in_progress() const;  // as if it were closed where it began
  bool sane() const;               // of state from a file: no field leads outside

  const Decided& decided() const { return decided_; }
  void clear();

 private:
  // A fetch inside an eval() validation that may turn out to be the first of training.
  struct Candidate {
    uint64_t loader = 0;
    // where the validation would end: at the loader's start if that came right before
    int64_t end_ns = 0;
    int64_t fetch_ns = 0;  // 0: none
    bool known_training = false, exhausted = false, samples_unknown = false;
    uint32_t batches = 0;
    uint64_t samples = 0;
  };
  struct Validation {
    bool on = false, by_eval = false;
    // one fetch, one forward without gradients: what comes next tells
    bool perhaps_teacher = false;
    uint32_t number = 0;
    int64_t begin_ns = 0, first_activity_ns = 0, last_activity_ns = 0;
    // newest forward with gradients in eval mode, 0: none since the last fetch
    int64_t pending_forward_ns = 0;
    Candidate candidate;
  };
  struct Tally {  // of the step, or of a part of it up to a provisional boundary
    uint32_t backwards = 0, optimizer_steps = 0, skipped = 0;
    uint8_t flags = 0;
    void add(const Tally& other);
  };
  struct Boundary {
    int64_t t_ns = 0;
    Tally tally;          // since the boundary before
    BatchTotals batches;  // since the step's begin
  };
  enum class Evidence : uint8_t { kTrainCalled, kTrainForward, kBackward };

  // validation
  void begin_validation(int64_t t_ns, bool by_eval);
  void activity(int64_t t_ns);
  int64_t start_of(const Loader& loader, int64_t t_ns) const;
  bool fetch_stays_validation(Loader& loader, int64_t t_ns);
  void set_candidate(Loader& loader, int64_t t_ns);
  void resolve_validation(Evidence evidence, int64_t t_ns);
  void end_validation(int64_t t_ns);
  void adopt(const Candidate& candidate);
  void loader_starts_in_validation(const Loader& loader, int64_t t_ns);
  void forward_without_gradients(int64_t t_ns);

  // steps
  void forget_preparation();
  void training_fetch(Loader& loader, int64_t t_ns);
  void optimizer_done();
  void unseen_forward(int64_t t_ns);
  void begin_step(int64_t t_ns);
  void begin_if_needed(int64_t t_ns) {
    if (!begun_) begin_step(t_ns);
  }
  void boundary_at_fetch(int64_t t_ns);
  void boundary_at_forward(int64_t t_ns);
  void close(int64_t t_ns, bool at_forward = false);
  bool unseen_cycle();
  void optimizer_event();
  void provisional(int64_t t_ns);
  void give_out_provisional();
  void merge_provisional();
  void push(int64_t end_ns, const Tally& tally, const BatchTotals& batches);
  ClosedStep closed(int64_t end_ns, const Tally& tally, const BatchTotals& batches) const;
  void reset_step(bool at_forward = false);
  void raised();
  void drop_optimizers(size_t count);

  uint32_t step_ = 0;
  bool begun_ = false;
  bool begin_missed_ = false;  // events were, before the first step's end
  int64_t begin_ns_ = 0;
  Tally tally_;
  uint64_t extra_samples_ = 0;
  bool has_extra_samples_ = false;
  bool optimizer_done_ = false, failed_ = false;
  bool optimizer_since_boundary_ = false, backward_since_boundary_ = false;
  bool optimizer_seen_ = false;    // ever
  bool unseen_optimizer_ = false;  // kProvisional cycles passed without any
  bool noted_unseen_ = false;      // boundaries_ are of cycles without an optimizer step
  // fetches or forwards in a row that came after a backward without an optimizer step; the most that
  // an optimizer step ended
  uint32_t cycles_ = 0, most_cycles_ = 0;
  bool fetch_seen_ = false;             // a training fetch since the first step began
  bool batch_since_optimizer_ = false;  // of a loader known as training
  uint8_t lasting_flags_ = 0;

  std::array<Boundary, kProvisional> boundaries_{};
  size_t boundary_count_ = 0;

  int input_depth_ = 0, forward_depth_ = 0, backward_depth_ = 0, forward_inside_ = 0,
      step_depth_ = 0;
  bool explicit_ = false;
  uint64_t fetching_ = 0;  // loader of the fetch in progress
  bool fetch_counts_ = false, fetch_is_candidate_ = false;

  // where forward began when no root module is called
  uint8_t steps_since_root_ = 2;  // a root was called with gradients less than two steps ago
  bool forward_seen_ = false;     // since the last backward
  int64_t optimizer_end_ns_ = 0, backward_end_ns_ = 0, zero_grad_ns_ = 0;

  // fetches of loaders not known as training, with nothing else since
  int64_t not_training_since_ns_ = 0;
  int64_t loader_start_ns_ = 0;  // the last iter_begin; 0: something else came since
  uint64_t starting_ = 0;        // its loader
  Validation validation_;
  LoaderMemory loaders_;
  OptimizerStack optimizers_;
  Decided decided_;
};

}  // namespace stepscope::agent
