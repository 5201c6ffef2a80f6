// One open segment: its reader, its timeline and fold, and how far they are. Used by Segments only.
//
// Thread safety: none, one owner. Lifetime: does not move (the fold asks the reader for names).
// Where to go on after a restart: the events of the step in progress are read again, by a timeline
// as it was before them. So a copy of the timeline's state is kept for each close whose successors
// are still needed; usually that is one, at most kMaxPoints. Each event is read from the ring once,
// and those that are missing are known by their place: the event after them says so, or its number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/fold.h"
#include "agent/loader_fold.h"
#include "agent/position.h"
#include "agent/timeline.h"
#include "model/history.h"
#include "ring/reader.h"

namespace stepscope::agent {

class Segment {
 public:
  // position: where an earlier agent was; without it at the ring's tail.
  Segment(std::string path, ring::Reader reader, const Position* position);
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  // A segment that an earlier agent read, up to the steps that the rank's history has.
  void go_on(const RankHistory& history);

  // One poll: identity, is the process alive (a zombie is not; `thorough` costs a look into /proc),
  // drain, and when nothing more can come, the end of the fold.
  void poll(bool thorough, std::vector<ring::EventValue>& buffer);
  void end(std::vector<ring::EventValue>& buffer);  // as if nothing more could come

  // Frees the ring up to what was ever committed, and more where the step in progress alone fills
  // half of it.
  void release(std::optional<uint64_t> committed);
  bool removable() const { return ended_ && !alive_ && (is_worker() || committed_ == needed()); }
  double fill() const;  // 0 to 1: of the ring, drained and not released

  bool is_worker() const { return identity_.role == wire::Role::kWorker; }
  bool closed() const;                          // by the recorder itself: nothing more comes
  bool active() const { return drained_ > 0; }  // the process did something that we observe
  uint64_t needed() const { return points_.front().index; }
  bool moved() const { return needed() != committed_; }  // or was never committed
  Position position() const;
  int64_t life_end_ns() const;  // of the process: its last event, or never while it lives
  Now now() const;
  std::string phase_name(uint8_t phase) const;

  const std::string& path() const { return path_; }
  const ring::IdentityValue& identity() const { return identity_; }
  ring::Reader& reader() { return reader_; }
  Fold& fold() { return fold_; }
  LoaderFold& loaders() { return loaders_; }  // of one that is_worker()
  Folded& out() { return out_; }
  bool alive() const { return alive_; }
  uint64_t drained() const { return drained_; }  // by this agent
  uint64_t dropped() const { return dropped_; }
  uint64_t written() const { return cursor_; }  // events, as far as they were drained

  std::optional<int32_t> rank;  // once it counts

 private:
  struct Point {
    uint64_t index;
    TimelineState state;  // before that event
  };
  static constexpr size_t kMaxPoints = 4;

  void refresh_identity();
  void drain(std::vector<ring::EventValue>& buffer, bool nothing_more);
  bool read(std::vector<ring::EventValue>& buffer, uint64_t& left);
  bool skip_gap();
  void push(const ring::EventValue& event);
  void hand_on();
  void keep_point();

  std::string path_;
  ring::Reader reader_;
  ring::IdentityValue identity_;
  Timeline timeline_;
  Fold fold_;
  LoaderFold loaders_;
  std::vector<Record> records_;  // of one event, for the fold
  Folded out_;
  uint64_t cursor_;  // first event not drained
  std::optional<uint64_t> committed_;
  uint64_t released_;  // the ring's tail
  uint64_t dropped_ = 0, drained_ = 0;
  std::vector<Point> points_;  // never empty; the first is the one to go on from
  int64_t last_event_ns_ = 0;
  bool restored_ = false;
  bool gap_ = false;  // events before the next one are missing
  bool attached_ = false;
  bool alive_ = true, ended_ = false;
};

}  // namespace stepscope::agent
