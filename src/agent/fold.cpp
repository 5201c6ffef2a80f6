#include "agent/fold.h"

#include <algorithm>
#include <utility>

namespace stepscope::agent {
namespace {

constexpr uint64_t kMaxSamples = uint64_t{1} << 40;  // more are no count; sums cannot overflow
constexpr size_t kKeepCapacity = 4096;  // items; what one long step needed beyond is given back
// After a close few items are left, but for the 16 steps that may be closed at once. Many, again
// and again, are not what our recorder writes, and would be sorted each time.
constexpr size_t kCrowded = 256;
constexpr int kMaxCrowdedCloses = 32;

bool has_sane_times(const Record& r) {
  return is_time(r.t0_ns) && is_time(r.t1_ns) && r.t0_ns <= r.t1_ns;
}

// A number that is neither a phase nor a user's cannot come from our recorder.
uint8_t known_phase(uint8_t phase) {
  const bool known =
      phase < kPhaseCount || (phase >= kFirstUserPhase && phase < kFirstUserPhase + kMaxUserPhases);
  return known ? phase : static_cast<uint8_t>(Phase::kOther);
}

bool taken_optimizer(const Item& item) {
  return item.is(Phase::kOptimizer) && !item.has(kSpanRaised);
}

// What nothing closed: the records since the last step's close.
struct Rest {
  int64_t end_ns = INT64_MIN;   // of the last phase; a collection at exit is teardown
  int64_t last_ns = INT64_MIN;  // of all
  bool closes = false;          // an optimizer, run or skipped, makes a step of it
};

Rest rest_of(const std::vector<Item>& items) {
  Rest rest;
  for (const Item& item : items) {
    rest.last_ns = std::max(rest.last_ns, item.t1_ns);
    if (!item.is(Phase::kGc)) rest.end_ns = std::max(rest.end_ns, item.t1_ns);
    rest.closes |= taken_optimizer(item) || item.kind == ItemKind::kSkipped;
  }
  return rest;
}

}  // namespace

Fold::Fold(int32_t rank, Tables tables) : rank_(rank), tables_(std::move(tables)) {}

void Fold::push(const Record& record, Folded& out) {
  sub_ = record.index + 1 != next_index_ ? 0 : std::min<uint8_t>(sub_, UINT8_MAX - 1) + 1;
  next_index_ = record.index + 1;
  if (!has_sane_times(record)) return;
  switch (record.kind) {
    case RecordKind::kSpan:
      return add(record, known_phase(record.phase), ItemKind::kSpan, out);
    case RecordKind::kStep:
      return close(record, out);
    case RecordKind::kZeroGrad:
      return add(record, 0, ItemKind::kZeroGrad, out);
    case RecordKind::kOptimizerSkipped:
      return add(record, 0, ItemKind::kSkipped, out);
    case RecordKind::kStepBegin:
      return add(record, 0, ItemKind::kStepBegin, out);
    case RecordKind::kSync:
      return add_sync(record);
    case RecordKind::kRecomputed:
      return add(record, 0, ItemKind::kRecomputed, out);
  }
}

void Fold::add(const Record& record, uint8_t phase, ItemKind kind, Folded& out) {
  const bool lasts = kind == ItemKind::kSpan || kind == ItemKind::kRecomputed;
  const int64_t t1_ns = lasts ? record.t1_ns : record.t0_ns;
  if (last_end_ns_ && record.t0_ns < *last_end_ns_ && t1_ns <= *last_end_ns_)
    return;  // of a closed step
  if (pending_.size() >= kMaxPending) give_up_pending(out);
  pending_.push_back({.t0_ns = record.t0_ns,
                      .t1_ns = t1_ns,
                      .index = record.index,
                      .step = record.step,
                      .phase = phase,
                      .flags = record.flags,
                      .kind = kind,
                      .sub = sub_});
  needed_index_ = std::min(needed_index_, record.index);
}

void Fold::add_sync(const Record& record) {
  if (last_end_ns_ && record.t1_ns <= *last_end_ns_) return;  // of a closed step
  if (syncs_.size() > StepSample::kMaxSyncs) return;          // none is kept: see take_syncs
  const auto number = static_cast<uint32_t>(record.sync >> 32);
  SyncPoint point{.index = static_cast<uint32_t>(record.sync),
                  .ready_ns = record.t0_ns,
                  .leave_ns = record.t1_ns,
                  .together = (record.flags & kSyncTogether) != 0};
  if (number > 0 && number < groups_.size()) {
    auto& group = groups_[number];
    if (!group) group = tables_.group_of(number);
    if (group) {
      point.group = group->id;
      point.members = group->members;
    }
  }
  syncs_.push_back({point, record.index});
  needed_index_ = std::min(needed_index_, record.index);
}

// Those that ended in the step; what lies after it belongs to later ones. A part of them would count
// the waits between as work.
void Fold::take_syncs(StepSample& step) {
  if (syncs_.size() > StepSample::kMaxSyncs) return syncs_.clear();
  std::erase_if(syncs_, [&](const PendingSync& sync) {
    if (sync.point.leave_ns > step.end_ns) return false;
    step.syncs.push_back(sync.point);
    return true;
  });
}

void Fold::close(const Record& record, Folded& out) {
  const bool is_explicit = (record.flags & kStepExplicit) != 0;
  explicit_ |= is_explicit;
  if (last_end_ns_ && record.t1_ns <= *last_end_ns_) return;  // was given out
  const int64_t begin_ns = std::max(record.t0_ns, last_end_ns_.value_or(record.t0_ns));
  StepSample step = sweep(begin_ns, record.t1_ns,
                          is_explicit ? block_begin(begin_ns, record.t1_ns) : begin_ns, out);
  take_syncs(step);
  last_end_ns_ = record.t1_ns;
  keep_carried(record.t1_ns);
  describe(step, record);
  out.steps.push_back(std::move(step));
}

void Fold::describe(StepSample& step, const Record& record) {
  const auto has = [&](StepFlags flag) { return (record.flags & flag) != 0; };
  step.step = record.step;
  step.failed = has(kStepFailed);
  step.profiled = has(kStepProfiled);
  step.compiled = has(kStepCompiled);
  step.paused = has(kStepPaused);
  step.incomplete |= has(kStepIncomplete);
  if (record.samples <= kMaxSamples) step.samples = static_cast<int64_t>(record.samples);
  step.fetches = record.counts.fetches;
  step.backwards = record.counts.backwards;
  step.optimizer_steps = record.counts.optimizer_steps;
  step.skipped_steps = record.counts.skipped_steps;
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
  for (const PendingSync& sync : syncs_) needed_index_ = std::min(needed_index_, sync.record_index);
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
    if (name.empty()) name = tables_.name_of(static_cast<uint8_t>(kFirstUserPhase + i));
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
    if (item.training_fetch() || (item.is(Phase::kForward) && !item.has(kSpanEvalForward)))
      training_ns = std::min(training_ns, item.t0_ns);
  }
  return mark_ns != INT64_MAX ? mark_ns : training_ns != INT64_MAX ? training_ns : any_ns;
}

void Fold::finish(const Record& rest_record, Folded& out) {
  needed_index_ = next_index_;
  if (pending_.empty()) return syncs_.clear();
  const int64_t begin_ns = rest_begin();
  const Rest rest = rest_of(pending_);
  const bool is_step = rest.closes && !explicit_ && begin_ns <= rest.end_ns;
  StepSample step =
      sweep(begin_ns, is_step ? rest.end_ns : std::max(begin_ns, rest.last_ns), begin_ns, out);
  pending_.clear();
  if (!is_step) return syncs_.clear();
  take_syncs(step);
  syncs_.clear();
  describe(step, rest_record);
  out.steps.push_back(std::move(step));
}

// The step in progress has too many records: what it has so far is forgotten but for its
// occurrences.
void Fold::give_up_pending(Folded& out) {
  int64_t last_ns = INT64_MIN;
  for (const Item& item : pending_) last_ns = std::max(last_ns, item.t1_ns);
  const int64_t begin_ns = rest_begin();
  sweep(begin_ns, std::max(begin_ns, last_ns), begin_ns, out);
  pending_.clear();
  syncs_.clear();
  incomplete_ = true;
  needed_index_ = next_index_;
}

void Fold::set_rank(int32_t rank) { rank_ = rank; }
void Fold::set_explicit() { explicit_ = true; }
void Fold::resume(int64_t last_end_ns) { last_end_ns_ = last_end_ns; }

}  // namespace stepscope::agent
