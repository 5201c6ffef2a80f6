#include "agent/segments.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>

#include "agent/counters.h"
#include "agent/loader_join.h"
#include "agent/notices.h"
#include "agent/segment.h"
#include "base/file.h"

namespace stepscope::agent {
namespace {

constexpr size_t kBuffer = 1024;         // events a read
constexpr uint64_t kThoroughEvery = 10;  // polls between two looks into /proc for a worker
constexpr size_t kMostPids = 4096;       // workers that start anew each epoch never end to be new

// The newest process of a rank.
struct Holder {
  int32_t pid = 0;
  int64_t pid_start_ticks = 0, opened_ns = 0, end_ns = 0;
};

bool same_process(const Holder& holder, const ring::IdentityValue& id) {
  return holder.pid == id.pid && holder.pid_start_ticks == id.pid_start_ticks;
}

bool at_the_same_time(const Holder& holder, const Segment& segment) {
  return holder.opened_ns < segment.life_end_ns() && segment.identity().mono_ns < holder.end_ns;
}

RankHistory& history_of(RunHistory& run, int32_t rank) {
  auto at = std::lower_bound(run.ranks.begin(), run.ranks.end(), rank,
                             [](const RankHistory& r, int32_t number) { return r.rank < number; });
  if (at != run.ranks.end() && at->rank == rank) return *at;
  at = run.ranks.insert(at, RankHistory{});
  at->rank = rank;
  return *at;
}

}  // namespace

struct Segments::Impl {
  std::string folder;
  std::map<std::pair<int32_t, uint64_t>, Position> start;  // by pid and nonce
  std::vector<std::unique_ptr<Segment>> segments;          // by the time they were made
  std::set<std::string> known;          // names in the folder: open, or cannot be read
  std::map<int32_t, Holder> holders;    // by rank
  std::map<int32_t, Counters> retired;  // of segments that are gone, by rank
  std::set<int32_t> pids;
  WorkerTotals workers;
  LoaderJoin loaders;
  int64_t retired_worker_drops = 0;
  std::vector<ring::EventValue> buffer = std::vector<ring::EventValue>(kBuffer);
  std::optional<wire::Control> control;
  uint64_t polls = 0;
  double fullest = 0;
  bool finished = false;

  void scan(RunHistory& run);
  void open(const std::string& name, RunHistory& run);
  void go_on(Segment& segment, RunHistory& run);
  int32_t rank_for(const Segment& segment, const RunHistory& run) const;
  bool counts(const Segment& segment, const RunHistory& run) const;
  void bind(Segment& segment, int32_t rank, RunHistory& run);
  void bind_leftovers(RunHistory& run);
  void hand_over(Segment& segment, RunHistory& run);
  void hand_over_all(RunHistory& run, Batch& batch);
  void hand_over_loaders(RunHistory& run);
  void refresh(RunHistory& run);
  void refresh_rank(const Segment& segment, RankHistory& rank);
  void measure_fullest();
  void retire(Segment& segment);
  void drop_removable();
  int32_t shown_rank(const Segment& segment) const;
  std::map<int32_t, Segment*> shown() const;
};

void Segments::Impl::scan(RunHistory& run) {
  const std::vector<std::string> names = list_folder(folder);
  std::set<std::string> present;
  for (const std::string& name : names) {
    if (!name.starts_with("seg-")) continue;
    present.insert(name);
    if (known.contains(name)) continue;
    if (segments.size() >= Segments::kMaxSegments) {
      note(run, "more than " + std::to_string(Segments::kMaxSegments) +
                    " processes record at once: some are not in this report");
      continue;
    }
    open(name, run);
  }
  std::erase_if(known, [&](const std::string& name) { return !present.contains(name); });
}

void Segments::Impl::open(const std::string& name, RunHistory& run) {
  const std::string path = folder + "/" + name;
  auto reader = ring::Reader::open(path);
  if (!reader) {
    if (!exists(path)) return;
    known.insert(name);
    return note(run, "one process is not in this report: " + reader.error().message);
  }
  known.insert(name);
  const ring::IdentityValue id = reader->identity();
  const auto at = start.find({id.pid, id.nonce});
  const Position* from = at != start.end() ? &at->second : nullptr;
  auto segment = std::make_unique<Segment>(path, std::move(*reader), from);
  if (!segment->is_worker() || pids.size() < kMostPids) pids.insert(id.pid);
  if (segment->is_worker())
    ++workers.processes;
  else if (from != nullptr)
    go_on(*segment, run);
  if (control) segment->reader().control(*control);
  const auto later = [](const auto& a, const auto& b) {
    return a->identity().mono_ns < b->identity().mono_ns;
  };
  segments.insert(std::upper_bound(segments.begin(), segments.end(), segment, later),
                  std::move(segment));
}

// A segment that an earlier agent read, up to the steps that the history has.
void Segments::Impl::go_on(Segment& segment, RunHistory& run) {
  const ring::IdentityValue& id = segment.identity();
  const auto rank = std::find_if(run.ranks.begin(), run.ranks.end(),
                                 [&](const RankHistory& r) { return r.pid == id.pid; });
  if (rank == run.ranks.end()) return;
  segment.go_on(*rank);
  bind(segment, rank->rank, run);
}

// The rank of the header, unless another process trains as that at the same time.
int32_t Segments::Impl::rank_for(const Segment& segment, const RunHistory& run) const {
  const ring::IdentityValue& id = segment.identity();
  const int32_t wanted = std::max(id.rank, 0);
  for (const auto& [rank, holder] : holders)
    if (same_process(holder, id)) return rank;
  const auto has_steps = [&](int32_t rank) {
    return std::any_of(run.ranks.begin(), run.ranks.end(), [&](const RankHistory& r) {
      return r.rank == rank && r.steps + r.failed_steps > 0;
    });
  };
  const auto taken = [&](int32_t rank) {
    const auto holder = holders.find(rank);
    return holder != holders.end() && at_the_same_time(holder->second, segment) && has_steps(rank);
  };
  if (!taken(wanted)) return wanted;
  int32_t free = id.world_size;
  while (taken(free)) ++free;
  return free;
}

bool Segments::Impl::counts(const Segment& segment, const RunHistory& run) const {
  const int32_t rank = segment.identity().rank;
  if (rank < 0 || segment.drained() == 0 || rank_for(segment, run) != rank) return false;
  const auto holder = holders.find(rank);  // one that has no steps either was there first
  return holder == holders.end() || !at_the_same_time(holder->second, segment);
}

void Segments::Impl::bind(Segment& segment, int32_t rank, RunHistory& run) {
  const ring::IdentityValue& id = segment.identity();
  Holder& holder = holders[rank];
  if (at_the_same_time(holder, segment))  // it had no step: it counts again when it makes one
    for (const auto& other : segments)
      if (other->rank == rank && same_process(holder, other->identity())) other->rank.reset();
  segment.rank = rank;
  segment.fold().set_rank(rank);
  RankHistory& r = history_of(run, rank);
  const bool another = r.pid != 0 && r.pid != id.pid;
  r.attempt = std::max(id.attempt, r.attempt + (another ? 1 : 0));
  if (id.mono_ns < holder.opened_ns) return;  // an earlier attempt, read later
  holder = {.pid = id.pid,
            .pid_start_ticks = id.pid_start_ticks,
            .opened_ns = id.mono_ns,
            .end_ns = segment.life_end_ns()};
  refresh_rank(segment, r);
}

// At the end everybody who named a rank counts. With nobody at all the process that did the most
// does.
void Segments::Impl::bind_leftovers(RunHistory& run) {
  Segment* only = nullptr;
  for (const auto& segment : segments) {
    if (segment->is_worker() || segment->rank) continue;
    if (segment->identity().rank >= 0 && rank_for(*segment, run) == segment->identity().rank)
      bind(*segment, segment->identity().rank, run);
    else if (only == nullptr || segment->drained() > only->drained())
      only = segment.get();
  }
  if (only != nullptr && run.ranks.empty()) bind(*only, std::max(only->identity().rank, 0), run);
}

void Segments::Impl::hand_over(Segment& segment, RunHistory& run) {
  Folded& out = segment.out();
  if (!segment.rank) {
    if (out.steps.empty() && !counts(segment, run)) return;
    const int32_t rank = rank_for(segment, run), wanted = std::max(segment.identity().rank, 0);
    if (rank != wanted)
      note(run, "processes " + std::to_string(holders[wanted].pid) + " and " +
                    std::to_string(segment.identity().pid) + " both train as rank " +
                    std::to_string(wanted) + ": the second is shown as rank " +
                    std::to_string(rank));
    bind(segment, rank, run);
  }
  RankHistory& r = history_of(run, *segment.rank);
  for (StepSample& step : out.steps) {
    step.rank = r.rank;
    r.add(std::move(step), run.settings);
  }
  for (Occurrence& occurrence : out.occurrences) {
    occurrence.rank = r.rank;
    r.add(occurrence);
  }
  out.steps.clear();
  out.occurrences.clear();
}

void Segments::Impl::hand_over_all(RunHistory& run, Batch& batch) {
  batch.positions.clear();
  for (const auto& segment : segments) {
    if (segment->is_worker()) continue;
    hand_over(*segment, run);
    if (segment->moved()) batch.positions.push_back(segment->position());
  }
  hand_over_loaders(run);
  refresh(run);
  measure_fullest();
}

// First what training processes tell, which says whose the workers are.
void Segments::Impl::hand_over_loaders(RunHistory& run) {
  for (const bool of_worker : {false, true})
    for (const auto& segment : segments) {
      LoaderFold& fold = segment->loaders();
      if (!segment->is_worker() || fold.of_worker() != of_worker || fold.delta().empty()) continue;
      const ring::IdentityValue& id = segment->identity();
      std::optional<int32_t> rank;
      for (const auto& [number, holder] : holders)
        if (same_process(holder, id)) rank = number;
      if (!rank && finished) rank = std::max(id.rank, 0);
      loaders.add(fold, id.pid, rank, run);
    }
}

void Segments::Impl::refresh_rank(const Segment& segment, RankHistory& rank) {
  const ring::IdentityValue& id = segment.identity();
  rank.local_rank = id.local_rank;
  rank.world_size = id.world_size;
  rank.node = id.node;
  rank.pid = id.pid;
  rank.executable = id.executable;
  rank.python_version = id.python_version;
  rank.torch_version = id.torch_version;
  rank.facts = id.facts;
}

void Segments::Impl::refresh(RunHistory& run) {
  std::map<int32_t, Counters> sums = retired;
  workers.dropped = retired_worker_drops;
  for (const auto& segment : segments) {
    if (segment->is_worker()) workers.dropped += bounded(segment->dropped());
    if (!segment->rank) continue;
    sums[*segment->rank].add(*segment);
    Holder& holder = holders[*segment->rank];
    if (!same_process(holder, segment->identity()) ||
        holder.opened_ns > segment->identity().mono_ns)
      continue;
    holder.end_ns = segment->life_end_ns();
    refresh_rank(*segment, history_of(run, *segment->rank));
  }
  // After a restart the segments of earlier attempts may be gone: never less than what was stored.
  for (const auto& [rank, sum] : sums) {
    RankHistory& r = history_of(run, rank);
    r.records_written = std::max(r.records_written, sum.written);
    r.records_dropped = std::max(r.records_dropped, sum.dropped);
    r.cost_ns = std::max(r.cost_ns, sum.cost_ns);
    r.cost_calls = std::max(r.cost_calls, sum.cost_calls);
  }
  note_drops(run);
}

void Segments::Impl::measure_fullest() {
  fullest = 0;
  for (const auto& segment : segments) fullest = std::max(fullest, segment->fill());
}

void Segments::Impl::retire(Segment& segment) {
  if (segment.rank) retired[*segment.rank].add(segment);
  if (segment.is_worker()) retired_worker_drops += bounded(segment.dropped());
  ::unlink(segment.path().c_str());
}

// Files of processes that are gone. One that never counted is kept, in case nobody does until the
// end.
void Segments::Impl::drop_removable() {
  bool kept_one = false;
  std::erase_if(segments, [&](const std::unique_ptr<Segment>& segment) {
    if (!segment->removable()) return false;
    if (!segment->is_worker() && !segment->rank && !finished && !std::exchange(kept_one, true))
      return false;
    retire(*segment);
    return true;
  });
}

// Which rank a process will have that does not count yet.
int32_t Segments::Impl::shown_rank(const Segment& segment) const {
  return segment.rank.value_or(std::max(segment.identity().rank, 0));
}

// The process to show for each rank: its newest; before anybody counts, one that does something.
std::map<int32_t, Segment*> Segments::Impl::shown() const {
  std::map<int32_t, Segment*> ranks;
  for (const auto& segment : segments) {
    if (segment->is_worker()) continue;
    Segment*& place = ranks[shown_rank(*segment)];
    const bool better =
        place == nullptr || segment->rank || (segment->alive() && !(place->rank && place->alive()));
    if (better && (segment->rank || segment->active())) place = segment.get();
  }
  std::erase_if(ranks, [](const auto& entry) { return entry.second == nullptr; });
  return ranks;
}

Segments::Segments(std::string folder, const std::vector<Position>& positions)
    : impl_(std::make_unique<Impl>()) {
  impl_->folder = std::move(folder);
  for (const Position& p : positions) impl_->start[{p.pid, p.nonce}] = p;
}
Segments::~Segments() = default;
Segments::Segments(Segments&&) noexcept = default;
Segments& Segments::operator=(Segments&&) noexcept = default;

void Segments::poll(RunHistory& run, int64_t now_ns, Batch& batch) {
  Impl& s = *impl_;
  if (s.finished) return;
  s.scan(run);
  ++s.polls;
  for (size_t i = 0; i < s.segments.size(); ++i) {
    Segment& segment = *s.segments[i];
    const uint64_t drained = segment.drained();
    segment.poll(!segment.is_worker() || (s.polls + i) % kThoroughEvery == 0, s.buffer);
    if (segment.is_worker()) s.workers.records += static_cast<int64_t>(segment.drained() - drained);
    if (segment.alive()) segment.reader().beat(now_ns);
  }
  s.hand_over_all(run, batch);
}

void Segments::finish(RunHistory& run, int64_t now_ns, Batch& batch) {
  Impl& s = *impl_;
  if (s.finished) return;
  poll(run, now_ns, batch);
  for (const auto& segment : s.segments) segment->end(s.buffer);
  s.hand_over_all(run, batch);
  s.bind_leftovers(run);
  s.finished = true;
  s.hand_over_all(run, batch);
}

void Segments::release(const std::vector<Position>& committed) {
  Impl& s = *impl_;
  std::map<std::pair<int32_t, uint64_t>, uint64_t> until;
  for (const Position& p : committed) until[{p.pid, p.nonce}] = p.next_index;
  for (const auto& segment : s.segments) {
    const auto at = until.find({segment->identity().pid, segment->identity().nonce});
    segment->release(at != until.end() ? std::optional(at->second) : std::nullopt);
  }
  s.drop_removable();
  s.measure_fullest();
}

bool Segments::any_alive() const {
  return std::any_of(impl_->segments.begin(), impl_->segments.end(),
                     [](const auto& segment) { return segment->alive() && !segment->is_worker(); });
}

bool Segments::any_seen() const { return !impl_->pids.empty(); }
double Segments::fullest() const { return impl_->fullest; }
std::set<int32_t> Segments::pids() const { return impl_->pids; }
const WorkerTotals& Segments::workers() const { return impl_->workers; }
void Segments::sample_workers(RunHistory& run) { impl_->loaders.sample(run); }

std::vector<RankNow> Segments::now() const {
  std::vector<RankNow> list;
  for (const auto& [rank, segment] : impl_->shown()) {
    const Now now = segment->now();
    list.push_back({.rank = rank,
                    .pid = segment->identity().pid,
                    .alive = segment->alive(),
                    .now = now,
                    .phase = now.since_ns > 0 ? segment->phase_name(now.phase) : std::string()});
  }
  return list;
}

std::vector<sampler::Process> Segments::rank_processes() const {
  std::vector<sampler::Process> list;
  for (const auto& [rank, segment] : impl_->shown())
    if (segment->alive())
      list.push_back({segment->identity().pid, segment->identity().pid_start_ticks, rank});
  return list;
}

void Segments::control(wire::Control word) {
  impl_->control = word;
  for (const auto& segment : impl_->segments) segment->reader().control(word);
}

}  // namespace stepscope::agent
