#include "engine/joined_steps.h"

#include <algorithm>
#include <map>
#include <utility>

#include "engine/median.h"

namespace stepscope::engine {
namespace {

// A rank that is this far behind the newest step is not waited for: it left, or its agent is cut off.
constexpr int64_t kMostBehind = 8;
constexpr size_t kLookForShared = 64;  // steps, to find a sync point that two ranks share

int32_t newest_attempt(const RunHistory& run) {
  int32_t attempt = 0;
  for (const RankHistory& rank : run.ranks) attempt = std::max(attempt, rank.attempt);
  return attempt;
}

}  // namespace

StepJoiner::StepJoiner(const RunHistory& run, int64_t from, Want want) : run_(run), want_(want) {
  const int32_t attempt = newest_attempt(run);
  tracks_.resize(run.ranks.size());
  for (size_t i = 0; i < tracks_.size(); ++i) {
    if (run.ranks[i].attempt != attempt || run.ranks[i].raw.empty()) continue;
    tracks_[i].raw = &run.ranks[i].raw;
    find_begin(tracks_[i], run.ranks[i]);
  }
  find_offsets();
  int64_t first = INT64_MAX;
  for (const Track& track : tracks_)
    if (track.any()) {
      first = std::min(first, (*track.raw)[track.begin].step + track.offset);
      newest_ = std::max(newest_, track.last());
    }
  next_ = std::max(from, first);
  for (Track& track : tracks_) {
    if (!track.any()) continue;
    const auto begin = track.raw->begin() + static_cast<std::ptrdiff_t>(track.begin);
    const auto at = std::lower_bound(
        begin, track.raw->end(), next_,
        [&](const StepSample& sample, int64_t step) { return sample.step + track.offset < step; });
    track.at = static_cast<size_t>(at - track.raw->begin());
    if (track.at > track.begin) pass(track, (*track.raw)[track.at - 1]);
  }
}

// Where the newest process of the rank began: its steps are numbered from 0 again.
void StepJoiner::find_begin(Track& track, const RankHistory& rank) const {
  track.begin = 0;
  const int64_t span = rank.raw.back().step - rank.raw.front().step;
  if (span + 1 == static_cast<int64_t>(rank.raw.size())) return;  // without a look at each
  size_t begin = rank.raw.size() - 1;
  while (begin > 0 && rank.raw[begin - 1].step < rank.raw[begin].step) --begin;
  track.begin = begin;
}

void StepJoiner::find_offsets() {
  const auto has_syncs = [](const Track& track) {
    return track.any() &&
           std::any_of(track.raw->begin() + static_cast<std::ptrdiff_t>(track.begin),
                       track.raw->end(), [](const StepSample& s) { return !s.syncs.empty(); });
  };
  const auto reference = std::find_if(tracks_.begin(), tracks_.end(), has_syncs);
  if (reference == tracks_.end()) return;
  std::map<std::pair<uint64_t, uint32_t>, int64_t> steps;
  const auto& raw = *reference->raw;
  const size_t oldest =
      std::max(reference->begin, raw.size() - std::min(raw.size(), kLookForShared));
  for (size_t i = oldest; i < raw.size(); ++i)
    for (const SyncPoint& sync : raw[i].syncs)
      if (sync.group != 0) steps.emplace(std::pair(sync.group, sync.index), raw[i].step);
  for (Track& track : tracks_) {
    if (!track.any() || &track == &*reference) continue;
    const auto& own = *track.raw;
    const size_t from =
        std::max(track.begin, own.size() - std::min(own.size(), 2 * kLookForShared));
    bool found = false;
    for (size_t i = own.size(); i-- > from && !found;)
      for (const SyncPoint& sync : own[i].syncs) {
        const auto at = steps.find({sync.group, sync.index});
        if (at == steps.end()) continue;
        track.offset = at->second - own[i].step;
        found = true;
        break;
      }
  }
}

// The rank's last sync point of a step that is not gathered itself.
void StepJoiner::pass(Track& track, const StepSample& sample) const {
  track.carried_work = track.carried_span = 0;
  if (!sample.syncs.empty()) {
    track.previous_leave_ns = sample.syncs.back().leave_ns;
    track.previous_known = true;
  }
  if (sample.incomplete || sample.syncs.size() >= StepSample::kMaxSyncs)
    track.previous_known = false;
}

StepJoiner::Point& StepJoiner::point(const SyncPoint& sync, size_t hint) {
  const auto is_it = [&](const Point& p) { return p.group == sync.group && p.index == sync.index; };
  if (hint < used_ && is_it(points_[hint])) return points_[hint];
  for (size_t i = 0; i < used_; ++i)
    if (is_it(points_[i])) return points_[i];
  if (points_.size() == used_) points_.emplace_back();
  Point& fresh = points_[used_++];
  fresh.group = sync.group;
  fresh.index = sync.index;
  fresh.members = sync.members;
  fresh.seen = 0;
  fresh.broken = false;
  fresh.work.assign(tracks_.size(), kAbsent);
  fresh.span.assign(tracks_.size(), kAbsent);
  fresh.wait.assign(tracks_.size(), kAbsent);
  return fresh;
}

void StepJoiner::gather(size_t position, const StepSample& sample) {
  Track& track = tracks_[position];
  if (!sample.steady() && !sample.syncs.empty()) unsteady_ = true;
  if (track.at > track.begin && (*track.raw)[track.at - 1].step + 1 != sample.step)
    track.previous_known = false;
  size_t hint = 0;
  for (const SyncPoint& sync : sample.syncs) {
    const double work = track.carried_work + static_cast<double>(std::max<int64_t>(
                                                 0, sync.ready_ns - track.previous_leave_ns));
    const double span = track.carried_span + static_cast<double>(std::max<int64_t>(
                                                 0, sync.leave_ns - track.previous_leave_ns));
    const bool counts = sync.together && sync.group != 0 && sync.members > 1;
    if (!counts) {
      track.carried_work = track.previous_known ? work : 0;
      track.carried_span = track.previous_known ? span : 0;
    } else {
      Point& joined = point(sync, hint++);
      joined.broken |= !track.previous_known || joined.members != sync.members;
      ++joined.seen;
      joined.work[position] = static_cast<float>(work);
      joined.span[position] = static_cast<float>(span);
      joined.wait[position] = static_cast<float>(std::max<int64_t>(0, sync.wait_ns()));
      track.carried_work = track.carried_span = 0;
    }
    track.previous_leave_ns = sync.leave_ns;
    track.previous_known = true;
  }
  if (sample.incomplete || sample.syncs.size() >= StepSample::kMaxSyncs)
    track.previous_known = false;
}

// One step of thousands of ranks lies in as many places: they are fetched while others are gathered.
void StepJoiner::fetch_ahead(size_t position) const {
  constexpr size_t kSyncs = 8, kSample = 16;
  if (position + kSample < tracks_.size())
    if (const Track& track = tracks_[position + kSample]; track.any()) {
      const auto* sample = reinterpret_cast<const char*>(track.raw->begin() + track.at);
      for (size_t at = 0; at < sizeof(StepSample); at += 64) __builtin_prefetch(sample + at);
    }
  if (position + kSyncs < tracks_.size())
    if (const Track& track = tracks_[position + kSyncs];
        track.any() && track.at < track.raw->size())
      __builtin_prefetch((*track.raw)[track.at].syncs.data());
}

bool StepJoiner::next(JoinedStep& out) {
  if (newest_ < next_) return false;
  if (run_.live)
    for (const Track& track : tracks_)
      if (track.any() && track.last() < next_ && track.last() >= newest_ - kMostBehind)
        return false;
  used_ = 0;
  unsteady_ = false;
  for (size_t i = 0; i < tracks_.size(); ++i) {
    fetch_ahead(i);
    Track& track = tracks_[i];
    if (!track.any() || track.at >= track.raw->size()) continue;
    const StepSample& sample = (*track.raw)[track.at];
    if (sample.step + track.offset != next_) continue;
    gather(i, sample);
    ++track.at;
  }
  out.step = next_++;
  finish(out);
  return true;
}

void StepJoiner::finish(JoinedStep& out) {
  size_t count = 0;
  for (size_t i = 0; i < used_ && !unsteady_; ++i) {
    const Point& p = points_[i];
    if (p.broken || p.seen != p.members) continue;
    if (out.syncs.size() <= count) out.syncs.emplace_back();
    fill(p, out.syncs[count++]);
  }
  out.syncs.resize(count);
  out.work.assign(tracks_.size(), kAbsent);
  for (const JoinedSync& sync : out.syncs)
    for (size_t i = 0; i < tracks_.size(); ++i)
      if (sync.work[i] != kAbsent) out.work[i] = std::max(0.0F, out.work[i]) + sync.work[i];
  out.ranks = static_cast<int32_t>(
      std::count_if(out.work.begin(), out.work.end(), [](float w) { return w != kAbsent; }));
  out.time_ns = out.transfer_ns = out.cost_ns = out.wait_ns = 0;
  for (JoinedSync& sync : out.syncs) {
    sync.weight /= std::max(1, out.ranks);
    out.time_ns += sync.weight * sync.time_ns;
    out.transfer_ns += sync.weight * sync.transfer_ns;
    out.cost_ns += sync.weight * sync.cost_ns;
    out.wait_ns += sync.weight * sync.wait_ns;
  }
}

void StepJoiner::fill(const Point& p, JoinedSync& out) {
  const auto blocked = static_cast<float>(run_.settings.blocked_us * 1000);
  out.work = p.work;
  out.weight = p.members;
  if (want_ == Want::kWork) return;
  scratch_.clear();
  for (const float span : p.span)
    if (span != kAbsent) scratch_.push_back(span);
  out.time_ns = median_of(scratch_);
  scratch_.clear();
  double sum = 0;
  float least = -1;
  for (const float wait : p.wait) {
    if (wait == kAbsent) continue;
    sum += wait;
    least = least < 0 ? wait : std::min(least, wait);
    if (wait > blocked) scratch_.push_back(wait);
  }
  out.wait_ns = sum / p.members;
  // A rank that was not blocked may have hidden the transfer behind its work: nothing is known of it then.
  out.transfer_ns = least;
  out.cost_ns = 0;
  if (scratch_.size() < 2) return;
  const auto late = std::min_element(scratch_.begin(), scratch_.end());
  const double late_wait = *late;
  std::swap(*late, scratch_.back());
  scratch_.pop_back();
  out.cost_ns = std::max(0.0, median_of(scratch_) - late_wait);
}

std::vector<int64_t> step_offsets(const RunHistory& run) {
  std::vector<int64_t> offsets(run.ranks.size(), 0);
  if (offsets.size() < 2) return offsets;
  const StepJoiner joiner(run, 0);
  for (size_t i = 0; i < offsets.size(); ++i) offsets[i] = joiner.offset(i);
  return offsets;
}

const StepSample* StepJoiner::sample(size_t position, int64_t job_step) const {
  const Track& track = tracks_[position];
  if (!track.any()) return nullptr;
  const int64_t own = job_step - track.offset, last = track.raw->back().step;
  const auto back = static_cast<int64_t>(track.raw->size()) - 1 - (last - own);
  if (own <= last && back >= static_cast<int64_t>(track.begin) &&
      (*track.raw)[static_cast<size_t>(back)].step == own)
    return &(*track.raw)[static_cast<size_t>(back)];
  const auto begin = track.raw->begin() + static_cast<std::ptrdiff_t>(track.begin);
  const auto at = std::lower_bound(begin, track.raw->end(), own,
                                   [](const StepSample& s, int64_t step) { return s.step < step; });
  return at != track.raw->end() && at->step == own ? &*at : nullptr;
}

}  // namespace stepscope::engine
