// The sync points of all ranks, joined by (group, index) and put into job steps: those of the lowest rank that has
// sync points. Another rank may number its steps otherwise; the first sync point that both had tells by how much.
//
//   work(r,k) = ready(r,k) - leave(r,k-1), k-1 the rank's sync point before, of any group
//   a sync point that does not end on all members together adds its work to the next one that does
//
// A sync point counts when every member was seen and each knew its sync point before; a step when one counts in it
// and all that took part were steady. Clocks of different ranks never meet.
//
// Thread safety: none. Lifetime: keeps pointers into the RunHistory. Cost: O(1) a rank and sync point.
#pragma once

#include <cstdint>
#include <vector>

#include "model/history.h"

namespace stepscope::engine {

inline constexpr float kAbsent = -1;  // work of a rank that did not take part

struct JoinedSync {
  double time_ns = 0;       // from the members' sync point before to this one, median
  double transfer_ns = 0;   // least wait of a member
  double cost_ns = 0;       // waiting for the last one: median of the others
  double wait_ns = 0;       // mean over the members
  double weight = 1;        // members / ranks of the step
  std::vector<float> work;  // by position in RunHistory::ranks
};

struct JoinedStep {
  int64_t step = 0;
  int32_t ranks = 0;              // that took part
  std::vector<float> work;        // W(r,s): sum over its syncs
  std::vector<JoinedSync> syncs;  // that count; none: the step is not judged
  double time_ns = 0, transfer_ns = 0, cost_ns = 0, wait_ns = 0;  // weighted sums
};

class StepJoiner {
 public:
  // kWork: of JoinedSync the work alone, and no weighted sums.
  enum class Want { kAll, kWork };
  // Job steps from `from` on, of the newest attempt.
  StepJoiner(const RunHistory& run, int64_t from, Want want = Want::kAll);

  // The next job step, judged or not. False: not all that still run have it yet, or there is none.
  bool next(JoinedStep& out);
  // A rank's own sample of a job step; nullptr: it has none.
  const StepSample* sample(size_t position, int64_t job_step) const;
  size_t ranks() const { return tracks_.size(); }
  int64_t offset(size_t position) const { return tracks_[position].offset; }  // job step - own step

 private:
  struct Track {
    const KeptList<StepSample>* raw = nullptr;
    size_t begin = 0, at = 0;  // of this attempt; next to read
    int64_t offset = 0;        // job step - own step
    int64_t previous_leave_ns = 0;
    bool previous_known = false;
    double carried_work = 0, carried_span = 0;
    bool any() const { return raw != nullptr && begin < raw->size(); }
    int64_t last() const { return raw->back().step + offset; }
  };
  struct Point {  // a sync point while its ranks are gathered
    uint64_t group = 0;
    uint32_t index = 0, members = 0, seen = 0;
    bool broken = false;
    std::vector<float> work, span, wait;
  };

  void find_begin(Track& track, const RankHistory& rank) const;
  void find_offsets();
  void pass(Track& track, const StepSample& sample) const;
  void fetch_ahead(size_t position) const;
  void gather(size_t position, const StepSample& sample);
  Point& point(const SyncPoint& sync, size_t hint);
  void finish(JoinedStep& out);
  void fill(const Point& point, JoinedSync& out);

  const RunHistory& run_;
  const Want want_;
  std::vector<Track> tracks_;  // by position
  int64_t next_ = 0, newest_ = -1;
  bool unsteady_ = false;
  std::vector<Point> points_;
  size_t used_ = 0;  // of points_
  std::vector<float> scratch_;
};

// By position: job step - own step; 0 where nothing tells.
std::vector<int64_t> step_offsets(const RunHistory& run);

}  // namespace stepscope::engine
