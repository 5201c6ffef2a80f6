// For tests of Segments: processes of a run, and a folder with what an agent keeps of them.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "agent/segments.h"
#include "base/file.h"
#include "model/facts.h"
#include "ring/reader.h"
#include "ring/writer.h"
#include "sampler/sampler.h"

namespace stepscope::agent {

// A process of the run as far as the agent can see it: a child that does nothing, and a segment in
// its name.
class FakeProcess {
 public:
  FakeProcess(const std::string& folder, int rank, size_t segment_bytes = wire::kRankSegmentBytes,
              wire::Role role = wire::Role::kRank) {
    ring::SegmentOptions options;
    options.folder = folder;
    options.role = role;
    options.segment_bytes = segment_bytes;
    options.shm_share = 0.9;
    options.rank = rank;
    options.world_size = std::max(1, rank + 1);
    auto created = ring::Writer::create(options);
    EXPECT_TRUE(created) << created.error().message;
    writer_ = *created;
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (;;) pause();
    }
    identity().pid = pid_;
    identity().pid_start_ticks = sampler::process_start(pid_).value_or(0);
    identity().mono_ns = 1'000 * ++count_;
  }
  ~FakeProcess() {
    die();
    munmap(&writer_.head(), identity().segment_bytes);
  }
  FakeProcess(const FakeProcess&) = delete;
  FakeProcess& operator=(const FakeProcess&) = delete;

  wire::Identity& identity() { return writer_.head().identity; }
  ring::Writer& writer() { return writer_; }
  int32_t pid() { return identity().pid; }
  void die() {
    if (pid_ == 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  void fact(uint32_t fact) { identity().facts.fetch_or(fact); }

  bool write(wire::EventCode code, int64_t t_ns, uint64_t a = 0, int flags = 0, uint8_t phase = 0) {
    return writer_.write(wire::pack(code, phase, static_cast<uint8_t>(flags)), a, t_ns);
  }
  bool write(const ring::EventValue& e) { return write(e.code, e.t_ns, e.a, e.flags, e.phase); }
  wire::Event& event(uint64_t index) {  // in its slot
    auto* bytes = reinterpret_cast<unsigned char*>(&writer_.head());
    return reinterpret_cast<wire::Event*>(bytes + wire::kRingOffset)[index % writer_.capacity()];
  }
  bool span(Phase phase, int64_t t0_ns, int64_t t1_ns) {  // two events
    return write(wire::EventCode::kPhaseBegin, t0_ns, 0, 0, static_cast<uint8_t>(phase)) &&
           write(wire::EventCode::kPhaseEnd, t1_ns, 0, 0, static_cast<uint8_t>(phase));
  }
  void optimizer(int64_t t0_ns, int64_t t1_ns) {
    write(wire::EventCode::kOptimizerBegin, t0_ns, 1);
    write(wire::EventCode::kOptimizerEnd, t1_ns, 1);
  }
  // Steps of 100 ns with an optimizer of 30 each, from where the last one ended: four events a step,
  // the last two a fetch that closes it; and two for the first fetch.
  void steps(int count) {
    if (!std::exchange(begun_, true)) fetch();
    for (int i = 0; i < count; ++i) {
      optimizer(now_ns_ + 10, now_ns_ + 40);
      now_ns_ += 100;
      fetch();
    }
  }
  int64_t now_ns() const { return now_ns_; }
  void begin_at(int64_t now_ns) { now_ns_ = now_ns; }

 private:
  void fetch() {
    write(wire::EventCode::kFetchBegin, now_ns_, 1, wire::kGradOn);
    write(wire::EventCode::kFetchEnd, now_ns_, 8);
  }

  static inline int count_ = 0;
  pid_t pid_ = 0;
  ring::Writer writer_;
  bool begun_ = false;
  int64_t now_ns_ = 1'000'000;
};

class SegmentsTest : public testing::Test {
 protected:
  SegmentsTest() {
    char name[] = "/dev/shm/stepscope-segments-test-XXXXXX";
    folder_ = mkdtemp(name);
    run_.settings.warmup_steps = 0;
  }
  ~SegmentsTest() override { remove_tree(folder_); }

  void poll(Segments& segments) { segments.poll(run_, 5, batch_); }
  void commit(Segments& segments) {
    segments.release(batch_.positions);
    for (const Position& p : batch_.positions) {
      std::erase_if(stored_,
                    [&](const Position& old) { return old.pid == p.pid && old.nonce == p.nonce; });
      stored_.push_back(p);
    }
    batch_.clear();
  }
  size_t files() const { return list_folder(folder_).size(); }

  std::string folder_;
  const KeptList<OccurrenceStats::Recent>& checkpoints() const {
    return run_.ranks.at(0).occurrences[static_cast<size_t>(OccurrenceKind::kCheckpoint)].recent;
  }

  RunHistory run_;
  Batch batch_;
  std::vector<Position> stored_;  // as run.db would hold them
};

}  // namespace stepscope::agent
