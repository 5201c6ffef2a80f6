// The segments of a run on this machine: finds them, drains them into folds, and hands steps to the
// run's history.
//
//   seg-* --found--> live --process gone, or closed--> ended --committed, process gone--> removed
//
// A tick of the agent's loop:
//     segments.poll(run, now, batch);                // every 100 ms; `batch` grows until committed
//     if (a second has passed || segments.fullest() >= kCommitEarly) {
//       store.commit(run, <batch as store::Batch>);  // history and positions in one transaction
//       segments.release(batch.positions);           // now writers may overwrite those events
//       batch.clear();
//     }
// and at the end: segments.finish(run, now, batch); commit; release. When fullest() >= kCommitEarly
// already right after a release, the writers are fast for their ring: poll again after a fifth of
// the usual wait.
//
// Thread safety: one owner, one thread. Lifetime: holds the segments' files open. Bounded:
// kMaxSegments open at a time; a poll ends even when a writer never rests. Every byte of a segment
// is hostile (ring::Reader, Fold).
// Invariant: a step is handed out once. The history and the positions of one moment belong
// together: after a restart with both no step is lost, doubled or different, as long as the ring
// still holds its events. Where it does not, and where a writer found no room, the step concerned is
// incomplete.
//
// Which rank: the header's, else 0. A later process of the same rank is another attempt of it; one
// that runs at the same time gets the next free number and a notice. A process counts from its
// first step on, or, when its header names a rank that nobody has, from its first event on:
// launchers and helpers that import torch and never train do not.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "agent/now.h"
#include "agent/position.h"
#include "model/history.h"
#include "sampler/sampler.h"
#include "wire/segment_format.h"

namespace stepscope::agent {

// What is to be committed besides the history; has the fields of store::Batch.
struct Batch {
  std::vector<Position> positions;  // those that moved, as of the last poll
  void clear() { positions.clear(); }
};

// What a rank's process does at this moment.
struct RankNow {
  int32_t rank = 0;
  int32_t pid = 0;
  bool alive = false;
  Now now{};
  std::string phase;  // a phase's name or the user's; empty: nothing was ever recorded
};

// Segments of loading seen so far: of workers, and of training processes with loaders.
struct WorkerTotals {
  int64_t processes = 0;
  int64_t records = 0;
  int64_t dropped = 0;
};

class Segments {
 public:
  static constexpr size_t kMaxSegments = 800;  // a descriptor each, of the usual 1024; more wait
  static constexpr double kCommitEarly = 0.25;

  // positions: committed earlier (Store::positions), empty for a new run.
  explicit Segments(std::string folder, const std::vector<Position>& positions = {});
  ~Segments();
  Segments(Segments&&) noexcept;
  Segments& operator=(Segments&&) noexcept;

  // Looks for new segments, drains all, adds steps and occurrences to run.ranks (inserted in order
  // of rank when first seen), refreshes the ranks' identity, facts,
  // counters and attempt, and adds to run.notices what the card must say (a segment that cannot be
  // read, two living processes of one rank, dropped events). Sets the heartbeat to now_ns (CLOCK_MONOTONIC). A
  // process that is gone, or closed its segment, is drained to its end and its last step closed.
  void poll(RunHistory& run, int64_t now_ns, Batch& batch);

  // After the commit of these positions: frees ring space; removes the files of processes that are
  // gone and wholly committed. Call it also when storing is impossible, or the rings fill up. Where
  // a step in progress alone has filled half a ring, its events are freed too: they are in the
  // fold, and only a killed agent loses them.
  void release(const std::vector<Position>& committed);

  // Everything as if every process had ended: last drain, rule (d) for the rest. Later polls hand
  // out nothing.
  void finish(RunHistory& run, int64_t now_ns, Batch& batch);

  bool any_alive() const;  // a process that is no worker and lives, as of the last poll
  bool any_seen() const;   // some segment was ever opened
  // 0 to 1: the largest part of a ring that is not released, as of the last poll or release.
  double fullest() const;
  std::vector<RankNow> now() const;  // one per rank, in order of rank; also before its first step
  // Living processes with a rank, for Sampler::sample.
  std::vector<sampler::Process> rank_processes() const;
  std::set<int32_t> pids() const;  // of all segments ever opened: who was observed
  const WorkerTotals& workers() const;
  // Adds what /proc says that each living worker has read, to run.loaders.
  void sample_workers(RunHistory& run);
  void control(wire::Control word);  // to every segment, also those that come later

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stepscope::agent
