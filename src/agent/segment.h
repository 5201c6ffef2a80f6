// One open segment: its reader, its fold, and how far both are. Used by Segments only.
//
// Thread safety: none, one owner. Lifetime: does not move (the fold asks the reader for names).
// Where records were dropped is known exactly: a writer drops only when head is capacity records
// ahead of the tail that was in force, so the loss lies right before the record of that number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/fold.h"
#include "ring/reader.h"

namespace stepscope::agent {

class Segment {
 public:
  // start: where to go on; without it at the ring's tail.
  Segment(std::string path, ring::Reader reader, std::optional<uint64_t> start);
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  // One poll: identity, is the process alive (a zombie is not; `thorough` costs a look into /proc),
  // drain, and when nothing more can come, the end of the fold.
  void poll(bool thorough, std::vector<ring::RecordValue>& buffer);
  void end(std::vector<ring::RecordValue>& buffer);  // as if nothing more could come

  // Frees the ring up to `committed`, and more where the step in progress alone fills half of it.
  void release(uint64_t committed);
  bool removable() const { return ended_ && !alive_ && (is_worker() || committed_ == needed()); }
  double fill() const;  // 0 to 1

  bool is_worker() const { return identity_.role == wire::Role::kWorker; }
  bool closed() const;  // by the recorder itself: nothing more comes
  bool active() const;  // the process did something that we observe
  uint64_t needed() const;
  bool moved() const { return needed() != committed_; }
  int64_t life_end_ns() const;  // of the process: its last record, or never while it lives
  ring::NowValue now() const { return reader_.now(); }
  std::string phase_name(uint8_t phase) const;

  const std::string& path() const { return path_; }
  const ring::IdentityValue& identity() const { return identity_; }
  ring::Reader& reader() { return reader_; }
  Fold& fold() { return fold_; }
  Folded& out() { return out_; }
  bool alive() const { return alive_; }
  uint64_t drained() const { return drained_; }
  uint64_t dropped() const { return dropped_; }
  uint64_t head() const { return head_; }

  std::optional<int32_t> rank;  // once it counts

 private:
  void refresh_identity();
  void drain(std::vector<ring::RecordValue>& buffer);
  void push(const ring::RecordValue& record, bool drops);
  bool full_at(uint64_t index) const;

  std::string path_;
  ring::Reader reader_;
  ring::IdentityValue identity_;
  Fold fold_;
  Folded out_;
  uint64_t start_;   // where this agent began
  uint64_t cursor_;  // first record not drained
  uint64_t committed_;
  uint64_t released_;  // the ring's tail
  uint64_t head_ = 0, dropped_ = 0, drained_ = 0;
  std::vector<uint64_t> full_at_;  // tail + capacity, for the newest tails
  int64_t last_event_ns_ = 0;
  bool alive_ = true, ended_ = false;
};

}  // namespace stepscope::agent
