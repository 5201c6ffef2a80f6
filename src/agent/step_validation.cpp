// The part of StepClock that tells validation from training.
#include <algorithm>

#include "agent/step_clock.h"

namespace stepscope::agent {
namespace {

// eval() and train() with nothing seen in between: an evaluation that calls no root (compiled),
// unless it is this short.
constexpr int64_t kQuietValidationNs = 1'000'000;

}  // namespace

// Inside a fetch it is of a model that the dataset asks.
void StepClock::eval_called(int64_t t_ns) {
  if (input_depth_ == 0) begin_validation(t_ns, true);
}

void StepClock::train_called(int64_t t_ns) {
  if (validation_.on && input_depth_ == 0) resolve_validation(Evidence::kTrainCalled, t_ns);
}

void StepClock::begin_validation(int64_t t_ns, bool by_eval) {
  if (validation_.on) {
    validation_.by_eval |= by_eval;
    return;
  }
  // A validation without eval() shows only at its first forward: what was fetched for it belongs to
  // it.
  const bool fetched_before = !by_eval && not_training_since_ns_ != 0;
  const uint32_t number = validation_.number + 1;
  validation_ = Validation{};
  validation_.on = true;
  validation_.by_eval = by_eval;
  validation_.perhaps_teacher = fetched_before;
  validation_.number = number;
  validation_.begin_ns = fetched_before ? not_training_since_ns_ : t_ns;
}

void StepClock::activity(int64_t t_ns) {
  Validation& v = validation_;
  if (v.first_activity_ns == 0) v.first_activity_ns = t_ns;
  v.last_activity_ns = t_ns;
}

// A validation without eval(), and a loader's start with gradients on.
void StepClock::loader_starts_in_validation(const Loader& loader, int64_t t_ns) {
  if (loader.state == LoaderState::kTraining) {
    end_validation(t_ns);
  } else if (validation_.perhaps_teacher && loader.fetches_since_backward > 0) {
    validation_.on = false;  // a peek and a forward to see whether the model runs
    not_training_since_ns_ = 0;
  }
}

int64_t StepClock::start_of(const Loader& loader, int64_t t_ns) const {
  return loader_start_ns_ != 0 && starting_ == loader.id ? loader_start_ns_ : t_ns;
}

// A fetch with gradients on, in validation.
bool StepClock::fetch_stays_validation(Loader& loader, int64_t t_ns) {
  Validation& v = validation_;
  if (v.by_eval) {
    set_candidate(loader, t_ns);
    return true;
  }
  const bool seen_here = loader.validation == v.number;
  if (loader.state == LoaderState::kTraining ||
      (loader.state == LoaderState::kUnknown && !seen_here)) {
    end_validation(start_of(loader, t_ns));
    return false;
  }
  loader.validation = v.number;
  v.pending_forward_ns = 0;
  activity(t_ns);
  return true;
}

// After eval() a fetch of a loader that is known to train may still be an evaluation on training
// data; what follows decides. Of several such fetches the first counts.
void StepClock::set_candidate(Loader& loader, int64_t t_ns) {
  Validation& v = validation_;
  v.pending_forward_ns = 0;
  if (v.candidate.fetch_ns != 0 && v.candidate.known_training) {
    fetch_is_candidate_ = v.candidate.loader == loader.id;
    return;
  }
  const bool known = loader.state == LoaderState::kTraining;
  const bool seen_here = loader.validation == v.number;
  loader.validation = v.number;
  if (!known) activity(t_ns);
  if (!known && seen_here) {
    v.candidate = {};
    return;
  }
  v.candidate = {.loader = loader.id,
                 .end_ns = start_of(loader, t_ns),
                 .fetch_ns = t_ns,
                 .known_training = known};
  fetch_is_candidate_ = true;
}

void StepClock::forward_without_gradients(int64_t t_ns) {
  if (validation_.on) {
    activity(t_ns);
    validation_.candidate = {};
    validation_.pending_forward_ns = 0;
  } else if (!batch_since_optimizer_) {
    begin_validation(t_ns, false);
    activity(t_ns);
  }
}

void StepClock::resolve_validation(Evidence evidence, int64_t t_ns) {
  const Candidate candidate = validation_.candidate;
  const int64_t pending_ns = evidence == Evidence::kBackward ? validation_.pending_forward_ns : 0;
  const bool adopted =
      candidate.fetch_ns != 0 &&
      (candidate.known_training || (evidence != Evidence::kTrainCalled && !candidate.exhausted));
  if (validation_.perhaps_teacher) {
    if (evidence != Evidence::kTrainCalled) {
      // fetch, a forward without gradients, then training: it was a teacher
      validation_.on = false;
      not_training_since_ns_ = 0;
      return;
    }
    loaders_.absorb(validation_.number);
  }
  const bool quiet = validation_.first_activity_ns == 0;
  if (adopted)
    end_validation(candidate.end_ns);
  else if (pending_ns != 0)
    end_validation(pending_ns);
  else
    end_validation(t_ns);
  if (evidence == Evidence::kTrainCalled && quiet && !adopted &&
      t_ns - validation_.begin_ns >= kQuietValidationNs) {
    decided_.any = decided_.validation_ended = true;
    decided_.validation_begin_ns = validation_.begin_ns;
    decided_.validation_end_ns = t_ns;
  }
  if (adopted) {
    adopt(candidate);
  } else if (pending_ns != 0) {
    boundary_at_forward(pending_ns);
    begin_if_needed(pending_ns);
  }
}

// Ends it, and gives it out when something was seen in it before that moment.
void StepClock::end_validation(int64_t t_ns) {
  Validation& v = validation_;
  v.on = false;
  not_training_since_ns_ = 0;
  if (v.first_activity_ns == 0 || v.first_activity_ns >= t_ns || v.begin_ns >= t_ns) return;
  decided_.any = decided_.validation_ended = true;
  decided_.validation_begin_ns = v.begin_ns;
  decided_.validation_end_ns = t_ns;
}

void StepClock::adopt(const Candidate& candidate) {
  Loader& loader = loaders_.find(candidate.loader);
  training_fetch(loader, candidate.fetch_ns);
  loaders_.fetched(loader);
  if (candidate.batches > 0)
    LoaderMemory::add_batch(loader, candidate.batches, candidate.samples,
                            candidate.samples_unknown);
  batch_since_optimizer_ |= candidate.batches > 0 && loader.state == LoaderState::kTraining;
  if (candidate.exhausted) loaders_.exhausted(loader);
  not_training_since_ns_ = 0;
}

void StepClock::finish(int64_t t_ns) {
  if (validation_.on)
    end_validation(std::min(t_ns, std::max(validation_.last_activity_ns, validation_.begin_ns)));
}

}  // namespace stepscope::agent
