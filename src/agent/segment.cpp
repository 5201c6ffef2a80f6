#include "agent/segment.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "model/facts.h"
#include "sampler/sampler.h"

namespace stepscope::agent {
namespace {

constexpr uint64_t kRingsPerPoll = 4;  // a writer that never rests must not hold up the others

// Cheap, but a zombie still counts as there.
bool pid_exists(int32_t pid) { return pid > 0 && (kill(pid, 0) == 0 || errno != ESRCH); }

}  // namespace

Segment::Segment(std::string path, ring::Reader reader, const Position* position)
    : path_(std::move(path)),
      reader_(std::move(reader)),
      identity_(reader_.identity()),
      fold_(std::max(identity_.rank, 0),
            {.name_of = [this](uint8_t phase) { return reader_.name(phase); },
             .group_of = [this](uint32_t number) { return reader_.group(number); }}),
      released_(reader_.tail()) {
  cursor_ = position != nullptr ? position->next_index : released_;
  if (position != nullptr) {
    committed_ = position->next_index;
    if (const auto state = restore_state(position->state)) {
      timeline_.restore(*state);
      last_event_ns_ = state->last_ns;
      restored_ = true;
    }
  }
  if (!restored_ && cursor_ > 0) timeline_.missed();  // what was open there is not known
  points_.push_back({cursor_, timeline_.state()});
}

void Segment::go_on(const RankHistory& history) {
  if (history.steps + history.failed_steps > 0) fold_.resume(history.last_end_ns);
  if (restored_) return;
  // The newest step of the history may be an earlier attempt's.
  if (!history.raw.empty() && history.raw.back().begin_ns >= identity_.mono_ns)
    timeline_.number_from(static_cast<uint32_t>(history.raw.back().step + 1));
  identity_.facts |= history.facts & ~kFactClosed;
  points_ = {{cursor_, timeline_.state()}};
}

void Segment::poll(bool thorough, std::vector<ring::EventValue>& buffer) {
  if (alive_)
    alive_ = pid_exists(identity_.pid) &&
             (!thorough || sampler::process_alive(identity_.pid, identity_.pid_start_ticks));
  if (ended_) return;
  if (!is_worker()) refresh_identity();
  if (!alive_ || closed())
    end(buffer);
  else
    drain(buffer, false);
  identity_.facts |= timeline_.facts();
}

// The late fields; what names the process and the segment is believed once.
void Segment::refresh_identity() {
  const ring::IdentityValue now = reader_.identity();
  if (now.nonce != identity_.nonce) return;
  identity_.rank = now.rank;
  identity_.local_rank = now.local_rank;
  identity_.world_size = now.world_size;
  identity_.local_world_size = now.local_world_size;
  identity_.node_rank = now.node_rank;
  identity_.attempt = now.attempt;
  identity_.facts |= now.facts;
  identity_.torch_version = now.torch_version;
}

void Segment::end(std::vector<ring::EventValue>& buffer) {
  if (ended_) return;
  ended_ = true;
  drain(buffer, true);
  timeline_.finish(cursor_, records_);
  hand_on();
  identity_.facts |= timeline_.facts();
  if ((identity_.facts & kFactExplicitSteps) != 0) fold_.set_explicit();
  fold_.finish(timeline_.in_progress(), out_);
  points_ = {{cursor_, timeline_.state()}};
}

void Segment::drain(std::vector<ring::EventValue>& buffer, bool nothing_more) {
  dropped_ = std::max(reader_.dropped(), dropped_);
  uint64_t left = kRingsPerPoll * reader_.capacity();
  while (left > 0) {
    if (read(buffer, left)) continue;
    // Where events were freed, or damaged, newer ones may stand further on. A writer that lives
    // goes on with the next one, once we are where it may not overwrite.
    const bool look = nothing_more || !attached_ || cursor_ < released_;
    if (!look || !skip_gap()) break;
    --left;
  }
  attached_ = true;
}

// False: nothing was there.
bool Segment::read(std::vector<ring::EventValue>& buffer, uint64_t& left) {
  const ring::Reader::Drained done = reader_.drain(cursor_, buffer);
  if (done.next_index <= cursor_) return false;
  for (size_t i = 0; i < done.count; ++i) push(buffer[i]);
  gap_ |= done.next_index > cursor_;
  cursor_ = std::max(cursor_, done.next_index);
  left -= std::min<uint64_t>(left, done.count + done.lost);
  return true;
}

bool Segment::skip_gap() {
  const auto next = reader_.oldest(cursor_);
  if (!next) return false;
  // A writer that is at work may have written this one after we had looked.
  ring::EventValue event;
  const bool here = *next == cursor_ || reader_.drain(cursor_, {&event, 1}).next_index > cursor_;
  if (here) return *next != cursor_;
  cursor_ = *next;
  return gap_ = true;
}

void Segment::push(const ring::EventValue& event) {
  const bool gap = std::exchange(gap_, false) || event.index > cursor_;
  cursor_ = event.index + 1;
  ++drained_;
  if (is_worker())
    return loaders_.push(event, [this](uint8_t number) { return reader_.name(number); });
  if (is_time(event.t_ns)) last_event_ns_ = std::max(last_event_ns_, event.t_ns);
  if (gap) timeline_.missed();
  timeline_.push(event, records_);
  hand_on();
}

void Segment::hand_on() {
  const uint64_t needed = fold_.needed_index();
  for (const Record& record : records_) fold_.push(record, out_);
  records_.clear();
  if (fold_.needed_index() != needed) keep_point();
}

void Segment::keep_point() {
  if (fold_.incomplete()) timeline_.flag_incomplete();
  const uint64_t needed = fold_.needed_index();
  if (cursor_ <= needed) {
    points_.clear();
  } else {
    while (points_.size() > 1 && points_[1].index <= needed) points_.erase(points_.begin());
    if (points_.size() == kMaxPoints) points_.pop_back();
  }
  points_.push_back({cursor_, timeline_.state()});
}

Position Segment::position() const {
  return {.pid = identity_.pid,
          .nonce = identity_.nonce,
          .next_index = needed(),
          .state = save_state(points_.front().state)};
}

void Segment::release(std::optional<uint64_t> committed) {
  committed_ = std::max(committed_, committed);
  uint64_t target = is_worker() ? cursor_ : std::min(committed_.value_or(released_), cursor_);
  if (cursor_ > target && cursor_ - target > reader_.capacity() / 2) target = cursor_;
  if (target <= released_) return;
  reader_.release(target);
  released_ = target;
}

double Segment::fill() const {
  const uint64_t held = cursor_ > released_ ? cursor_ - released_ : 0;
  return std::min(1.0, static_cast<double>(held) / static_cast<double>(reader_.capacity()));
}

// A backward whose own work is done waits for the others until it ends.
Now Segment::now() const {
  Now now = timeline_.now();
  if (now.phase != static_cast<uint8_t>(Phase::kBackward)) return now;
  const int64_t ready_ns = reader_.ready_ns();
  if (is_time(ready_ns) && ready_ns >= now.since_ns && now.since_ns > 0) {
    now.phase = static_cast<uint8_t>(Phase::kSync);
    now.since_ns = ready_ns;
  }
  return now;
}

bool Segment::closed() const { return (identity_.facts & kFactClosed) != 0; }
int64_t Segment::life_end_ns() const { return alive_ ? INT64_MAX : last_event_ns_; }

std::string Segment::phase_name(uint8_t phase) const {
  return phase < kPhaseCount ? std::string(kPhaseNames[phase]) : reader_.name(phase);
}

}  // namespace stepscope::agent
