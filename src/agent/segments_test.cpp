#include "agent/segments.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/file.h"
#include "model/facts.h"
#include "ring/writer.h"
#include "sampler/sampler.h"

namespace stepscope::agent {
namespace {

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

  bool span(Phase phase, int64_t t0_ns, int64_t t1_ns) {
    return writer_.write({.t0_ns = t0_ns,
                          .t1_ns = t1_ns,
                          .step = step_,
                          .kind = wire::RecordKind::kSpan,
                          .phase = static_cast<uint8_t>(phase),
                          .flags = 0});
  }
  // Steps of 100 ns with an optimizer of 30 each, from where the last one ended.
  void steps(int count) {
    for (int i = 0; i < count; ++i) {
      span(Phase::kOptimizer, now_ns_ + 10, now_ns_ + 40);
      if (writer_.write({.t0_ns = now_ns_,
                         .t1_ns = now_ns_ + 100,
                         .step = step_,
                         .kind = wire::RecordKind::kStep,
                         .phase = 0,
                         .flags = 0}))
        ++step_;
      now_ns_ += 100;
    }
  }
  int64_t now_ns() const { return now_ns_; }
  void begin_at(int64_t now_ns) { now_ns_ = now_ns; }

 private:
  static inline int count_ = 0;
  pid_t pid_ = 0;
  ring::Writer writer_;
  uint32_t step_ = 0;
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
  RunHistory run_;
  Batch batch_;
  std::vector<Position> stored_;  // as run.db would hold them
};

TEST_F(SegmentsTest, StepsOfEachRankReachItsHistory) {
  FakeProcess one(folder_, 1), zero(folder_, 0);
  zero.identity().facts = kFactDataLoader;
  one.steps(3);
  zero.steps(2);
  Segments segments(folder_);
  EXPECT_FALSE(segments.any_seen());
  poll(segments);
  ASSERT_EQ(run_.ranks.size(), 2u);
  EXPECT_EQ(run_.ranks[0].rank, 0);
  EXPECT_EQ(run_.ranks[0].steps, 2);
  EXPECT_EQ(run_.ranks[0].facts, kFactDataLoader);
  EXPECT_EQ(run_.ranks[0].pid, zero.pid());
  EXPECT_EQ(run_.ranks[0].records_written, 4);
  EXPECT_EQ(run_.ranks[1].rank, 1);
  EXPECT_EQ(run_.ranks[1].steps, 3);
  EXPECT_EQ(run_.ranks[1].raw[2].rank, 1);
  EXPECT_EQ(run_.ranks[1].raw[2][Phase::kOptimizer], 30);
  EXPECT_TRUE(segments.any_alive());
  EXPECT_TRUE(segments.any_seen());
  EXPECT_EQ(segments.rank_processes().size(), 2u);
  one.steps(1);
  poll(segments);
  EXPECT_EQ(run_.ranks[1].steps, 4);
  EXPECT_TRUE(run_.notices.empty());
}

TEST_F(SegmentsTest, AStepThatWasNotCommittedIsReadAgainAfterARestart) {
  FakeProcess process(folder_, 0);
  process.steps(5);
  RunHistory stored;
  stored.settings = run_.settings;
  {
    Segments first(folder_);
    poll(first);
    commit(first);
    stored = run_;
    process.steps(3);
    process.span(Phase::kCheckpoint, process.now_ns(), process.now_ns() + 20);
    poll(first);
    EXPECT_EQ(run_.ranks[0].steps, 8);
    batch_.clear();  // the agent is killed here
  }
  run_ = stored;
  process.steps(2);
  Segments second(folder_, stored_);
  poll(second);
  EXPECT_EQ(run_.ranks[0].steps, 10);
  EXPECT_EQ(run_.ranks[0].incomplete_steps, 0);
  ASSERT_EQ(batch_.occurrences.size(), 1u);
  int64_t end_ns = 1'000'000;
  for (const StepSample& s : run_.ranks[0].raw) {
    EXPECT_EQ(s.begin_ns, end_ns);
    end_ns = s.end_ns;
  }
}

TEST_F(SegmentsTest, WhatWasCommittedButNotReleasedIsNotDoubled) {
  FakeProcess process(folder_, 0);
  process.steps(5);
  {
    Segments first(folder_);
    poll(first);
    stored_ = batch_.positions;  // committed; killed before the release
    batch_.clear();
  }
  process.steps(1);
  Segments second(folder_, stored_);
  poll(second);
  EXPECT_EQ(run_.ranks[0].steps, 6);
}

TEST_F(SegmentsTest, ADeadProcessIsDrainedEndedCommittedAndRemoved) {
  FakeProcess process(folder_, 0);
  process.steps(2);
  Segments segments(folder_);
  poll(segments);
  process.steps(1);
  process.span(Phase::kOptimizer, process.now_ns(), process.now_ns() + 50);
  process.die();
  poll(segments);
  EXPECT_FALSE(segments.any_alive());
  EXPECT_EQ(run_.ranks[0].steps, 4);
  EXPECT_EQ(files(), 1u);
  commit(segments);
  EXPECT_EQ(files(), 0u);
  EXPECT_TRUE(segments.any_seen());
  EXPECT_EQ(run_.ranks[0].records_written, 7);
  poll(segments);
  EXPECT_EQ(run_.ranks[0].steps, 4);
  EXPECT_EQ(run_.ranks[0].records_written, 7);
}

TEST_F(SegmentsTest, AClosedSegmentIsEndedWhileItsProcessLives) {
  FakeProcess process(folder_, 0);
  process.span(Phase::kOptimizer, process.now_ns(), process.now_ns() + 50);
  Segments segments(folder_);
  poll(segments);
  EXPECT_EQ(run_.ranks[0].steps, 0);
  process.fact(kFactClosed);
  poll(segments);
  EXPECT_EQ(run_.ranks[0].steps, 1);
  EXPECT_NE(run_.ranks[0].facts & kFactClosed, 0u);
  EXPECT_TRUE(segments.any_alive());
  commit(segments);
  EXPECT_EQ(files(), 1u);
}

TEST_F(SegmentsTest, AHoleOfAKilledWriterMakesItsStepIncomplete) {
  FakeProcess process(folder_, 0);
  process.steps(1);
  uint64_t hole;
  ASSERT_TRUE(process.writer().claim(hole));
  process.steps(2);
  Segments segments(folder_);
  poll(segments);
  EXPECT_EQ(run_.ranks[0].steps, 1);
  process.die();
  poll(segments);
  EXPECT_EQ(run_.ranks[0].steps, 3);
  EXPECT_EQ(run_.ranks[0].incomplete_steps, 1);
  EXPECT_TRUE(run_.ranks[0].raw[1].incomplete);
}

TEST_F(SegmentsTest, DropsMakeTheStepIncompleteInWhichTheyWere) {
  FakeProcess process(folder_, 0, wire::kWorkerSegmentBytes);
  const uint64_t capacity = process.writer().capacity();
  Segments segments(folder_);
  process.steps(static_cast<int>(capacity / 2) + 50);  // 100 records too many
  poll(segments);
  EXPECT_DOUBLE_EQ(segments.fullest(), 1);
  EXPECT_EQ(run_.ranks[0].records_dropped, 100);
  process.span(Phase::kOptimizer, 1, 2);
  EXPECT_EQ(run_.ranks[0].incomplete_steps, 0);
  commit(segments);
  EXPECT_DOUBLE_EQ(segments.fullest(), 0);
  process.steps(20);
  poll(segments);
  EXPECT_EQ(run_.ranks[0].incomplete_steps, 1);
  EXPECT_EQ(run_.ranks[0].steps, static_cast<int64_t>(capacity / 2) + 20);
  EXPECT_TRUE(run_.ranks[0].raw[capacity / 2].incomplete);
  poll(segments);
  EXPECT_EQ(run_.ranks[0].records_dropped, 101);
}

TEST_F(SegmentsTest, AStepLargerThanTheRingIsNotLost) {
  FakeProcess process(folder_, 0, wire::kWorkerSegmentBytes);
  const int64_t begin_ns = process.now_ns();
  Segments segments(folder_);
  const int records = static_cast<int>(process.writer().capacity()) * 5;
  for (int i = 0; i < records; ++i) {
    ASSERT_TRUE(process.span(Phase::kForward, begin_ns + 2 * i, begin_ns + 2 * i + 1));
    if (i % 100 == 99) {
      poll(segments);
      commit(segments);
    }
  }
  process.writer().write({.t0_ns = begin_ns,
                          .t1_ns = begin_ns + 2 * records,
                          .step = 0,
                          .kind = wire::RecordKind::kStep,
                          .phase = 0,
                          .flags = 0});
  poll(segments);
  ASSERT_EQ(run_.ranks[0].raw.size(), 1u);
  EXPECT_EQ(run_.ranks[0].raw[0][Phase::kForward], records);
  EXPECT_FALSE(run_.ranks[0].raw[0].incomplete);
  EXPECT_EQ(run_.ranks[0].records_dropped, 0);
}

TEST_F(SegmentsTest, AStepWhoseRecordsWereFreedIsIncompleteAfterARestart) {
  FakeProcess process(folder_, 0, wire::kWorkerSegmentBytes);
  process.steps(2);
  {
    Segments first(folder_);
    poll(first);
    commit(first);
    for (uint64_t i = 0; i < process.writer().capacity() * 3 / 4; ++i)
      process.span(Phase::kForward, process.now_ns() + 1, process.now_ns() + 2);
    poll(first);
    commit(first);
  }
  process.steps(2);
  Segments second(folder_, stored_);
  poll(second);
  EXPECT_EQ(run_.ranks[0].steps, 4);
  EXPECT_TRUE(run_.ranks[0].raw[2].incomplete);
  EXPECT_FALSE(run_.ranks[0].raw[3].incomplete);
}

TEST_F(SegmentsTest, WorkersAreCountedAndTheirFilesGoWhenTheyDo) {
  FakeProcess rank(folder_, 0), worker(folder_, 0, wire::kWorkerSegmentBytes, wire::Role::kWorker);
  rank.steps(1);
  worker.steps(4);
  Segments segments(folder_);
  poll(segments);
  EXPECT_EQ(segments.workers().processes, 1);
  EXPECT_EQ(segments.workers().records, 8);
  EXPECT_EQ(run_.ranks[0].steps, 1);
  EXPECT_EQ(run_.ranks[0].records_written, 2);
  worker.die();
  poll(segments);
  commit(segments);
  EXPECT_EQ(files(), 1u);
  EXPECT_TRUE(segments.any_alive());
  rank.die();
  poll(segments);
  EXPECT_FALSE(segments.any_alive());
}

TEST_F(SegmentsTest, ALaterProcessOfARankIsAnotherAttempt) {
  FakeProcess first(folder_, 0);
  first.begin_at(500);
  first.identity().mono_ns = 100;
  first.steps(3);
  first.die();
  FakeProcess second(folder_, 0);
  second.steps(2);
  second.die();
  Segments segments(folder_);
  poll(segments);
  ASSERT_EQ(run_.ranks.size(), 1u);
  EXPECT_EQ(run_.ranks[0].steps, 5);
  EXPECT_EQ(run_.ranks[0].attempt, 1);
  EXPECT_EQ(run_.ranks[0].pid, second.identity().pid);
  EXPECT_EQ(run_.ranks[0].records_written, 10);
  EXPECT_TRUE(run_.notices.empty());
}

TEST_F(SegmentsTest, TwoProcessesOfARankAtTheSameTimeAreTwoRanks) {
  FakeProcess first(folder_, 0), second(folder_, 0);
  first.steps(3);
  second.steps(2);
  Segments segments(folder_);
  poll(segments);
  ASSERT_EQ(run_.ranks.size(), 2u);
  EXPECT_EQ(run_.ranks[0].steps, 3);
  EXPECT_EQ(run_.ranks[1].steps, 2);
  ASSERT_EQ(run_.notices.size(), 1u);
  EXPECT_EQ(run_.notices[0], "processes " + std::to_string(first.pid()) + " and " +
                                 std::to_string(second.pid()) +
                                 " both train as rank 0: the second is shown as rank 1");
}

TEST_F(SegmentsTest, AProcessThatNeverTrainsDoesNotTakeARank) {
  FakeProcess launcher(folder_, -1);
  launcher.span(Phase::kCheckpoint, 10, 20);
  FakeProcess trainer(folder_, -1);
  Segments segments(folder_);
  poll(segments);
  EXPECT_TRUE(run_.ranks.empty());
  trainer.steps(2);
  poll(segments);
  ASSERT_EQ(run_.ranks.size(), 1u);
  EXPECT_EQ(run_.ranks[0].pid, trainer.pid());
  segments.finish(run_, 5, batch_);
  ASSERT_EQ(run_.ranks.size(), 1u);
  EXPECT_EQ(run_.ranks[0].steps, 2);
  EXPECT_TRUE(batch_.occurrences.empty());
  EXPECT_TRUE(run_.notices.empty());
}

TEST_F(SegmentsTest, AProcessWithRecordsOnlyYieldsToTheOneThatTrains) {
  FakeProcess parent(folder_, 0);
  parent.span(Phase::kCheckpoint, 10, 20);
  Segments segments(folder_);
  poll(segments);
  ASSERT_EQ(run_.ranks.size(), 1u);
  FakeProcess child(folder_, 0);
  child.steps(2);
  poll(segments);
  ASSERT_EQ(run_.ranks.size(), 1u);
  EXPECT_EQ(run_.ranks[0].steps, 2);
  EXPECT_EQ(run_.ranks[0].pid, child.pid());
  parent.steps(1);
  poll(segments);
  ASSERT_EQ(run_.ranks.size(), 2u);
  EXPECT_EQ(run_.ranks[1].pid, parent.pid());
}

TEST_F(SegmentsTest, WithoutAnyStepTheProcessIsThereAtTheEnd) {
  FakeProcess process(folder_, -1);
  process.span(Phase::kCheckpoint, 10, 20);
  Segments segments(folder_);
  poll(segments);
  EXPECT_TRUE(run_.ranks.empty());
  segments.finish(run_, 5, batch_);
  ASSERT_EQ(run_.ranks.size(), 1u);
  EXPECT_EQ(run_.ranks[0].rank, 0);
  EXPECT_EQ(run_.ranks[0].steps, 0);
  EXPECT_EQ(batch_.occurrences.size(), 1u);
  process.steps(3);
  poll(segments);
  EXPECT_EQ(run_.ranks[0].steps, 0);
}

TEST_F(SegmentsTest, TheEndClosesTheLastStepOfALivingProcess) {
  FakeProcess process(folder_, 0);
  process.steps(1);
  process.span(Phase::kOptimizer, process.now_ns() + 5, process.now_ns() + 50);
  Segments segments(folder_);
  segments.finish(run_, 5, batch_);
  ASSERT_EQ(run_.ranks[0].steps, 2);
  EXPECT_EQ(run_.ranks[0].raw[1].total_ns(), 50);
}

TEST_F(SegmentsTest, TheRestOfTraceStepIsNoStep) {
  FakeProcess process(folder_, 0);
  process.fact(kFactExplicitSteps);
  process.span(Phase::kOptimizer, process.now_ns() + 5, process.now_ns() + 50);
  Segments segments(folder_);
  segments.finish(run_, 5, batch_);
  EXPECT_EQ(run_.ranks[0].steps, 0);
}

TEST_F(SegmentsTest, NowIsKnownBeforeTheFirstStep) {
  FakeProcess process(folder_, -1);
  Segments segments(folder_);
  poll(segments);
  EXPECT_TRUE(segments.now().empty());
  process.writer().head().now.since_ns = 77;
  poll(segments);
  ASSERT_EQ(segments.now().size(), 1u);
  EXPECT_EQ(segments.now()[0].rank, 0);
  EXPECT_EQ(segments.now()[0].phase, "input");
  EXPECT_EQ(segments.now()[0].now.since_ns, 77);
  EXPECT_TRUE(segments.now()[0].alive);
  EXPECT_EQ(segments.rank_processes().size(), 1u);
}

TEST_F(SegmentsTest, ControlReachesRanksAlsoLaterOnes) {
  FakeProcess first(folder_, 0);
  Segments segments(folder_);
  poll(segments);
  segments.control(wire::Control::kOff);
  FakeProcess second(folder_, 1);
  poll(segments);
  EXPECT_EQ(first.writer().head().control.word.load(), static_cast<uint32_t>(wire::Control::kOff));
  EXPECT_EQ(second.writer().head().control.word.load(), static_cast<uint32_t>(wire::Control::kOff));
  EXPECT_EQ(first.writer().head().reader.heartbeat_ns.load(), 5);
}

TEST_F(SegmentsTest, WhatIsNoSegmentIsSaidOnceAndLeft) {
  std::ofstream(folder_ + "/seg-1-bad") << std::string(70'000, 'x');
  std::ofstream(folder_ + "/run.txt") << "x";
  Segments segments(folder_);
  poll(segments);
  poll(segments);
  ASSERT_EQ(run_.notices.size(), 1u);
  EXPECT_NE(run_.notices[0].find("seg-1-bad"), std::string::npos);
  EXPECT_FALSE(segments.any_seen());
  commit(segments);
  EXPECT_EQ(files(), 2u);
}

TEST_F(SegmentsTest, AFolderThatIsGoneIsNoProblem) {
  Segments segments(folder_ + "/missing");
  poll(segments);
  segments.finish(run_, 5, batch_);
  EXPECT_TRUE(run_.ranks.empty());
}

}  // namespace
}  // namespace stepscope::agent
