#include "agent/fold.h"

#include <algorithm>
#include <utility>

namespace stepscope::agent {
namespace {

// Times beyond this are no clock's; with it no sum of an interval can overflow.
constexpr int64_t kMaxTimeNs = int64_t{1} << 62;
constexpr size_t kKeepCapacity = 4096;  // items; what one long step needed beyond is given back
// After a close few items are left, but for the 16 steps that may be closed at once. Many, again
// and again, are not what our recorder writes, and would be sorted each time.
constexpr size_t kCrowded = 256;
constexpr int kMaxCrowdedCloses = 32;

bool has_sane_times(const ring::RecordValue& r) {
  return 0 <= r.t0_ns && r.t0_ns <= r.t1_ns && r.t1_ns <= kMaxTimeNs;
}

// A number that is neither a phase nor a user's cannot come from our recorder.
uint8_t known_phase(uint8_t phase) {
  const bool known =
      phase < kPhaseCount || (phase >= kFirstUserPhase && phase < kFirstUserPhase + kMaxUserPhases);
  return known ? phase : static_cast<uint8_t>(Phase::kOther);
}

std::optional<ItemKind> mark_kind(uint8_t code) {
  switch (static_cast<wire::MarkCode>(code)) {
    case wire::MarkCode::kZeroGrad:
      return ItemKind::kZeroGrad;
    case wire::MarkCode::kOptimizerSkipped:
      return ItemKind::kSkipped;
    case wire::MarkCode::kStepBegin:
      return ItemKind::kStepBegin;
    case wire::MarkCode::kValidationBegin:
      return ItemKind::kValidationBegin;
    case wire::MarkCode::kReady:
      break;  // where sync begins, which its own record says
  }
  return std::nullopt;
}

bool taken_optimizer(const Item& item) {
  return item.is(Phase::kOptimizer) && !item.has(wire::kSpanRaised);
}

bool failed(const Item& item) {
  return item.has(wire::kSpanRaised) &&
         (item.is(Phase::kForward) || item.is(Phase::kBackward) || item.is(Phase::kOptimizer));
}

// What nothing closed: the records since the last step's close.
struct Rest {
  int64_t end_ns = INT64_MIN;   // of the last phase; a collection at exit is teardown
  int64_t last_ns = INT64_MIN;  // of all
  std::optional<uint32_t>
      closing_step;  // number of the step that an optimizer, run or skipped, makes of it
  bool raised = false;
  int32_t fetches = 0, backwards = 0, optimizer_steps = 0, skipped_steps = 0;
};

Rest rest_of(const std::vector<Item>& items) {
  Rest rest;
  bool iter_waiting =
      false;  // a loader's start is flagged like the first fetch after it, and is none
  for (const Item& item : items) {
    rest.last_ns = std::max(rest.last_ns, item.t1_ns);
    if (!item.is(Phase::kGc)) rest.end_ns = std::max(rest.end_ns, item.t1_ns);
    rest.raised |= failed(item);
    if (item.training_fetch()) {
      iter_waiting = item.has(wire::kSpanEpochStart) && !iter_waiting;
      rest.fetches += !iter_waiting && !item.has(wire::kSpanExhausted | wire::kSpanRaised);
    }
    rest.backwards += item.is(Phase::kBackward);
    rest.optimizer_steps += taken_optimizer(item);
    rest.skipped_steps += item.kind == ItemKind::kSkipped;
    if (taken_optimizer(item) || item.kind == ItemKind::kSkipped) rest.closing_step = item.step;
  }
  return rest;
}

}  // namespace

Fold::Fold(int32_t rank, std::function<std::string(uint8_t)> name_of)
    : rank_(rank), name_of_(std::move(name_of)) {}

void Fold::push(const ring::RecordValue& record, Folded& out) {
  next_index_ = record.index + 1;
  if (record.device != wire::kHostClock || !has_sane_times(record)) return;
  switch (record.kind) {
    case wire::RecordKind::kSpan:
      return add(record, known_phase(record.phase), ItemKind::kSpan, out);
    case wire::RecordKind::kSync:
      return add(record, static_cast<uint8_t>(Phase::kSync), ItemKind::kSpan, out);
    case wire::RecordKind::kStep:
      return close(record, out);
    case wire::RecordKind::kMark:
      if (const auto kind = mark_kind(record.phase)) add(record, 0, *kind, out);
      return;
    case wire::RecordKind::kNone:
      return;
  }
}

void Fold::add(const ring::RecordValue& record, uint8_t phase, ItemKind kind, Folded& out) {
  const int64_t t1_ns = kind == ItemKind::kSpan ? record.t1_ns : record.t0_ns;
  if (last_end_ns_ && record.t0_ns < *last_end_ns_ && t1_ns <= *last_end_ns_)
    return;  // of a closed step
  if (pending_.size() >= kMaxPending) give_up_pending(out);
  pending_.push_back({.t0_ns = record.t0_ns,
                      .t1_ns = t1_ns,
                      .index = record.index,
                      .step = record.step,
                      .phase = phase,
                      .flags = record.flags,
                      .kind = kind});
}

void Fold::close(const ring::RecordValue& record, Folded& out) {
  const bool is_explicit = (record.flags & wire::kStepExplicit) != 0;
  explicit_ |= is_explicit;
  if (last_end_ns_ && record.t1_ns <= *last_end_ns_) return;  // was given out
  const int64_t begin_ns = std::max(record.t0_ns, last_end_ns_.value_or(record.t0_ns));
  StepSample step = sweep(begin_ns, record.t1_ns,
                          is_explicit ? block_begin(begin_ns, record.t1_ns) : begin_ns, out);
  last_end_ns_ = record.t1_ns;
  keep_carried(record.t1_ns);
  step.step = record.step;
  step.failed = (record.flags & wire::kStepFailed) != 0;
  step.profiled = (record.flags & wire::kStepProfiled) != 0;
  step.compiled = (record.flags & wire::kStepCompiled) != 0;
  step.paused = (record.flags & wire::kStepPaused) != 0;
  if (record.a <= static_cast<uint64_t>(INT64_MAX)) step.samples = static_cast<int64_t>(record.a);
  const wire::StepCounts counts = wire::unpack_counts(record.b);
  step.fetches = counts.fetches;
  step.backwards = counts.backwards;
  step.optimizer_steps = counts.optimizer_steps;
  step.skipped_steps = counts.skipped_steps;
  out.steps.push_back(std::move(step));
}

// What reaches beyond the close, or lies after it, belongs to later steps.
void Fold::keep_carried(int64_t end_ns) {
  std::erase_if(pending_,
                [&](const Item& item) { return item.t1_ns <= end_ns && item.t0_ns < end_ns; });
  crowded_closes_ = pending_.size() > kCrowded ? crowded_closes_ + 1 : 0;
  if (crowded_closes_ > kMaxCrowdedCloses) {
    pending_.clear();
    incomplete_ = true;
  }
  needed_index_ = next_index_;
  for (const Item& item : pending_) needed_index_ = std::min(needed_index_, item.index);
  if (!pending_.empty() || pending_.capacity() <= kKeepCapacity) return;
  std::vector<Item>().swap(pending_);
  sweep_.give_back_memory();
}

StepSample Fold::sweep(int64_t begin_ns, int64_t end_ns, int64_t block_begin_ns, Folded& out) {
  shares_ = Shares{};
  const size_t first = out.occurrences.size();
  sweep_.run(pending_, {.begin_ns = begin_ns, .end_ns = end_ns, .block_begin_ns = block_begin_ns},
             shares_, out.occurrences);
  for (size_t i = first; i < out.occurrences.size(); ++i) out.occurrences[i].rank = rank_;
  StepSample step;
  step.rank = rank_;
  step.begin_ns = begin_ns;
  step.end_ns = end_ns;
  step.phase_ns = shares_.phase_ns;
  step.parts = shares_.parts;
  step.incomplete = std::exchange(incomplete_, false);
  if (shares_.users != 0) name_user_phases(step);
  return step;
}

void Fold::name_user_phases(StepSample& step) {
  for (size_t i = 0; i < kMaxUserPhases; ++i) {
    if ((shares_.users >> i & 1) == 0) continue;
    std::string& name = names_[i];
    if (name.empty()) name = name_of_(static_cast<uint8_t>(kFirstUserPhase + i));
    if (const auto built_in = phase_from_name(name)) {
      step[*built_in] += shares_.user_ns[i];
      continue;
    }
    auto& rows = step.user_phase_ns;
    const auto row =
        std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.first == name; });
    if (row != rows.end())
      row->second += shares_.user_ns[i];
    else
      rows.emplace_back(name, shares_.user_ns[i]);
  }
}

// Entry of the trace_step block that this interval ends with; the interval's begin when no mark
// says.
int64_t Fold::block_begin(int64_t begin_ns, int64_t end_ns) const {
  int64_t block_ns = begin_ns;
  for (const Item& item : pending_)
    if (item.kind == ItemKind::kStepBegin && item.t0_ns <= end_ns)
      block_ns = std::max(block_ns, item.t0_ns);
  return block_ns;
}

// Begin of a step that nothing closed: where the last one ended; for the first step its last mark
// (what was fetched before was a peek), or the first fetch or forward.
int64_t Fold::rest_begin() const {
  if (last_end_ns_) return *last_end_ns_;
  int64_t mark_ns = INT64_MAX, training_ns = INT64_MAX, any_ns = INT64_MAX;
  for (const Item& item : pending_) {
    any_ns = std::min(any_ns, item.t0_ns);
    if (item.kind == ItemKind::kStepBegin)
      mark_ns = mark_ns == INT64_MAX ? item.t0_ns : std::max(mark_ns, item.t0_ns);
    if (item.training_fetch() || (item.is(Phase::kForward) && !item.has(wire::kSpanEvalForward)))
      training_ns = std::min(training_ns, item.t0_ns);
  }
  return mark_ns != INT64_MAX ? mark_ns : training_ns != INT64_MAX ? training_ns : any_ns;
}

void Fold::finish(Folded& out) {
  needed_index_ = next_index_;
  if (pending_.empty()) return;
  end_open_validation();
  const int64_t begin_ns = rest_begin();
  const Rest rest = rest_of(pending_);
  const bool is_step = rest.closing_step && !explicit_ && begin_ns <= rest.end_ns;
  StepSample step =
      sweep(begin_ns, is_step ? rest.end_ns : std::max(begin_ns, rest.last_ns), begin_ns, out);
  pending_.clear();
  if (!is_step) return;
  step.step = *rest.closing_step;
  step.failed = rest.raised;
  step.fetches = rest.fetches;
  step.backwards = rest.backwards;
  step.optimizer_steps = rest.optimizer_steps;
  step.skipped_steps = rest.skipped_steps;
  out.steps.push_back(std::move(step));
}

// A process that dies inside a validation leaves its mark without a span. A later backward says
// that it was none.
void Fold::end_open_validation() {
  const auto before = [](const Item& a, const Item& b) { return a.t0_ns < b.t0_ns; };
  Item open{.t0_ns = INT64_MIN,
            .t1_ns = INT64_MIN,
            .index = 0,
            .step = 0,
            .phase = static_cast<uint8_t>(Phase::kValidation),
            .flags = 0,
            .kind = ItemKind::kSpan};
  for (const Item& item : pending_) {
    open.t1_ns = std::max(open.t1_ns, item.t1_ns);
    if (item.kind != ItemKind::kValidationBegin || before(item, open)) continue;
    open.t0_ns = item.t0_ns;
    open.index = item.index;
    open.step = item.step;
  }
  if (open.t0_ns == INT64_MIN) return;
  const bool is_void = std::any_of(pending_.begin(), pending_.end(), [&](const Item& item) {
    return (item.is(Phase::kBackward) && item.t0_ns >= open.t0_ns) ||
           (item.is(Phase::kValidation) && item.t1_ns > open.t0_ns);
  });
  if (!is_void) pending_.push_back(open);
}

// The step in progress has too many records: what it has so far is forgotten but for its
// occurrences.
void Fold::give_up_pending(Folded& out) {
  int64_t last_ns = INT64_MIN;
  for (const Item& item : pending_) last_ns = std::max(last_ns, item.t1_ns);
  const int64_t begin_ns = rest_begin();
  sweep(begin_ns, std::max(begin_ns, last_ns), begin_ns, out);
  pending_.clear();
  incomplete_ = true;
  needed_index_ = next_index_;
}

void Fold::note_loss(uint64_t records) { incomplete_ |= records != 0; }
uint64_t Fold::needed_index() const { return needed_index_; }
void Fold::set_rank(int32_t rank) { rank_ = rank; }
void Fold::set_explicit() { explicit_ = true; }
void Fold::resume(int64_t last_end_ns) { last_end_ns_ = last_end_ns; }

}  // namespace stepscope::agent
