#include "agent/segment.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "model/facts.h"
#include "sampler/sampler.h"

namespace stepscope::agent {
namespace {

constexpr size_t kTailsRemembered = 8;
constexpr uint64_t kRingsPerPoll = 4;  // a writer that never rests must not hold up the others

// Cheap, but a zombie still counts as there.
bool pid_exists(int32_t pid) { return pid > 0 && (kill(pid, 0) == 0 || errno != ESRCH); }

}  // namespace

Segment::Segment(std::string path, ring::Reader reader, std::optional<uint64_t> start)
    : path_(std::move(path)),
      reader_(std::move(reader)),
      identity_(reader_.identity()),
      fold_(std::max(identity_.rank, 0), [this](uint8_t phase) { return reader_.name(phase); }),
      released_(reader_.tail()) {
  start_ = cursor_ = committed_ = start.value_or(released_);
  full_at_.push_back(released_ + reader_.capacity());
  if (start_ < released_ || (!start && released_ > 0))
    fold_.note_loss(1);  // freed before its step was stored
}

void Segment::poll(bool thorough, std::vector<ring::RecordValue>& buffer) {
  if (alive_)
    alive_ = pid_exists(identity_.pid) &&
             (!thorough || sampler::process_alive(identity_.pid, identity_.pid_start_ticks));
  if (ended_) return;
  if (!is_worker()) refresh_identity();
  if (!alive_ || closed())
    end(buffer);
  else
    drain(buffer);
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

void Segment::end(std::vector<ring::RecordValue>& buffer) {
  if (ended_) return;
  drain(buffer);
  if ((identity_.facts & kFactExplicitSteps) != 0) fold_.set_explicit();
  fold_.finish(out_);
  ended_ = true;
}

void Segment::drain(std::vector<ring::RecordValue>& buffer) {
  const bool nothing_more = !alive_ || closed();
  const uint64_t dropped = reader_.dropped();
  const bool drops = dropped > dropped_;
  dropped_ = std::max(dropped, dropped_);
  head_ = reader_.head();
  const uint64_t first = cursor_;
  const bool place_known = std::any_of(full_at_.begin(), full_at_.end(), [&](uint64_t index) {
    return first <= index && index <= head_;
  });
  if (drops && !place_known) fold_.note_loss(1);
  uint64_t left = kRingsPerPoll * reader_.capacity();
  while (cursor_ < head_ && left > 0) {
    const auto done = reader_.drain(cursor_, buffer, nothing_more);
    if (done.next_index == cursor_) break;
    for (size_t i = 0; i < done.count; ++i) push(buffer[i], drops);
    if (done.next_index > cursor_) fold_.note_loss(done.next_index - cursor_);  // holes at the end
    cursor_ = std::max(cursor_, done.next_index);
    left -= std::min<uint64_t>(left, done.count + done.lost);
  }
  if (drops && (!place_known || full_at(cursor_))) fold_.note_loss(1);
}

void Segment::push(const ring::RecordValue& record, bool drops) {
  if (record.index > cursor_ || (drops && full_at(record.index))) fold_.note_loss(1);
  cursor_ = record.index + 1;
  ++drained_;
  if (is_worker()) return;
  last_event_ns_ = std::max(last_event_ns_, record.t1_ns);
  fold_.push(record, out_);
}

bool Segment::full_at(uint64_t index) const {
  return std::find(full_at_.begin(), full_at_.end(), index) != full_at_.end();
}

void Segment::release(uint64_t committed) {
  committed_ = std::max(committed_, committed);
  uint64_t target = is_worker() ? cursor_ : std::min(committed_, cursor_);
  if (cursor_ > target && cursor_ - target > reader_.capacity() / 2) target = cursor_;
  if (target <= released_) return;
  reader_.release(target);
  released_ = target;
  full_at_.push_back(target + reader_.capacity());
  if (full_at_.size() > kTailsRemembered) full_at_.erase(full_at_.begin());
}

double Segment::fill() const {
  const uint64_t held = head_ > released_ ? head_ - released_ : 0;
  return std::min(1.0, static_cast<double>(held) / static_cast<double>(reader_.capacity()));
}

bool Segment::closed() const { return (identity_.facts & kFactClosed) != 0; }
bool Segment::active() const { return head_ > 0 || now().since_ns > 0; }
uint64_t Segment::needed() const { return std::max(start_, fold_.needed_index()); }
int64_t Segment::life_end_ns() const { return alive_ ? INT64_MAX : last_event_ns_; }

std::string Segment::phase_name(uint8_t phase) const {
  return phase < kPhaseCount ? std::string(kPhaseNames[phase]) : reader_.name(phase);
}

}  // namespace stepscope::agent
