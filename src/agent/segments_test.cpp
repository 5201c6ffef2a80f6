#include "agent/segments.h"

#include <gtest/gtest.h>

#include <fstream>

#include "agent/notices.h"
#include "agent/segments_fixture.h"

namespace stepscope::agent {
namespace {

TEST_F(SegmentsTest, StepsOfEachRankReachItsHistory) {
  FakeProcess one(folder_, 1), zero(folder_, 0);
  zero.identity().facts = kFactDdp;
  one.steps(3);
  zero.steps(2);
  Segments segments(folder_);
  EXPECT_FALSE(segments.any_seen());
  poll(segments);
  ASSERT_EQ(run_.ranks.size(), 2u);
  EXPECT_EQ(run_.ranks[0].rank, 0);
  EXPECT_EQ(run_.ranks[0].steps, 2);
  EXPECT_EQ(run_.ranks[0].facts, kFactDdp | kFactDataLoader);
  EXPECT_EQ(run_.ranks[0].pid, zero.pid());
  EXPECT_EQ(run_.ranks[0].records_written, 10);
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
  EXPECT_EQ(checkpoints().size(), 1u);
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
  process.optimizer(process.now_ns(), process.now_ns() + 50);
  process.die();
  poll(segments);
  EXPECT_FALSE(segments.any_alive());
  EXPECT_EQ(run_.ranks[0].steps, 4);
  EXPECT_EQ(files(), 1u);
  commit(segments);
  EXPECT_EQ(files(), 0u);
  EXPECT_TRUE(segments.any_seen());
  EXPECT_EQ(run_.ranks[0].records_written, 16);
  poll(segments);
  EXPECT_EQ(run_.ranks[0].steps, 4);
  EXPECT_EQ(run_.ranks[0].records_written, 16);
}

TEST_F(SegmentsTest, AClosedSegmentIsEndedWhileItsProcessLives) {
  FakeProcess process(folder_, 0);
  process.optimizer(process.now_ns(), process.now_ns() + 50);
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

TEST_F(SegmentsTest, ADamagedEventMakesItsStepIncompleteAtTheEnd) {
  FakeProcess process(folder_, 0);
  process.steps(1);
  Segments segments(folder_);
  poll(segments);
  process.steps(2);
  process.event(9).seq = 0;  // the end of the third step's fetch
  poll(segments);
  EXPECT_EQ(run_.ranks[0].steps, 2);
  process.die();
  poll(segments);
  EXPECT_EQ(run_.ranks[0].steps, 3);
  EXPECT_EQ(run_.ranks[0].incomplete_steps, 1);
  EXPECT_TRUE(run_.ranks[0].raw[2].incomplete);
}

TEST_F(SegmentsTest, AnAgentThatComesLateReadsFromTheOldestEventThatIsThere) {
  FakeProcess process(folder_, 0, wire::kWorkerSegmentBytes);
  const auto capacity = static_cast<int>(process.writer().capacity());
  for (int i = 0; i < 3; ++i) {
    process.steps(capacity / 5);
    process.writer().head().reader.tail = process.writer().written();
    process.writer().head().reader.tail_check = ~process.writer().written();
  }
  process.writer().head().reader.tail = 7;  // and the tail is damaged
  process.steps(5);
  Segments segments(folder_);
  poll(segments);
  ASSERT_GT(run_.ranks[0].steps, capacity / 5);
  EXPECT_EQ(run_.ranks[0].incomplete_steps, 1);
  EXPECT_TRUE(run_.ranks[0].raw[0].incomplete);
}

TEST_F(SegmentsTest, DropsMakeTheStepIncompleteInWhichTheyWere) {
  FakeProcess process(folder_, 0, wire::kWorkerSegmentBytes);
  const int64_t whole = static_cast<int64_t>(process.writer().capacity() - 2) / 4;
  Segments segments(folder_);
  process.steps(static_cast<int>(whole) + 602);  // 2,406 events too many
  poll(segments);
  EXPECT_DOUBLE_EQ(segments.fullest(), 1);
  const int64_t dropped = run_.ranks[0].records_dropped;
  EXPECT_EQ(dropped, 4 * (whole + 602) + 2 - static_cast<int64_t>(process.writer().capacity()));
  EXPECT_EQ(run_.ranks[0].incomplete_steps, 0);
  ASSERT_EQ(run_.notices.size(), 1u);
  EXPECT_EQ(run_.notices[0].substr(0, 52), "rank 0: 2,406 events were dropped because the ring w");
  commit(segments);
  EXPECT_LT(segments.fullest(), 0.01);
  process.steps(20);
  poll(segments);
  EXPECT_EQ(run_.ranks[0].incomplete_steps, 1);
  EXPECT_EQ(run_.ranks[0].steps, whole + 20);
  EXPECT_TRUE(run_.ranks[0].raw[static_cast<size_t>(whole)].incomplete);
  EXPECT_FALSE(run_.ranks[0].raw[static_cast<size_t>(whole) + 1].incomplete);
  process.steps(static_cast<int>(whole) + 1);
  poll(segments);
  EXPECT_GT(run_.ranks[0].records_dropped, dropped);
  ASSERT_EQ(run_.notices.size(), 1u);  // of the same notice, the newest number
  EXPECT_EQ(run_.notices[0].find("2,406"), std::string::npos);
}

TEST(NoticeOfDrops, IsOneOfAllRanksWithTheNewestNumber) {
  RunHistory run;
  run.notices = {"another"};
  run.ranks.resize(3);
  note_drops(run);
  EXPECT_EQ(run.notices.size(), 1u);
  run.ranks[1].rank = 3;
  run.ranks[1].records_dropped = 1;
  note_drops(run);
  ASSERT_EQ(run.notices.size(), 2u);
  EXPECT_EQ(run.notices[1],
            "rank 3: 1 event was dropped because the ring was full; the steps concerned are "
            "marked incomplete and left out of the averages");
  run.ranks[2].records_dropped = 1'234'567;
  note_drops(run);
  ASSERT_EQ(run.notices.size(), 2u);
  EXPECT_EQ(run.notices[1].substr(0, 40), "2 ranks: 1,234,568 events were dropped b");
}

TEST_F(SegmentsTest, AStepLargerThanTheRingIsNotLost) {
  FakeProcess process(folder_, 0, wire::kWorkerSegmentBytes);
  process.steps(0);
  const int64_t begin_ns = process.now_ns();
  Segments segments(folder_);
  const int spans = static_cast<int>(process.writer().capacity()) * 3;
  for (int i = 0; i < spans; ++i) {
    ASSERT_TRUE(process.span(Phase::kForward, begin_ns + 2 * i, begin_ns + 2 * i + 1));
    if (i % 100 == 99) {
      poll(segments);
      commit(segments);
    }
  }
  process.begin_at(begin_ns + 2 * spans);
  process.steps(1);
  poll(segments);
  ASSERT_EQ(run_.ranks[0].raw.size(), 1u);
  EXPECT_EQ(run_.ranks[0].raw[0].begin_ns, begin_ns);
  EXPECT_EQ(run_.ranks[0].raw[0][Phase::kForward], spans);
  EXPECT_FALSE(run_.ranks[0].raw[0].incomplete);
  EXPECT_EQ(run_.ranks[0].records_dropped, 0);
}

// Freed before its step was stored: read again when nobody has overwritten it, else incomplete.
TEST_F(SegmentsTest, AStepWhoseEventsWereFreedIsIncompleteAfterARestartIfTheyAreGone) {
  for (const bool gone : {false, true}) {
    FakeProcess process(folder_, gone ? 1 : 0, wire::kWorkerSegmentBytes);
    process.steps(2);
    const auto forwards = [&](uint64_t events) {
      for (uint64_t i = 0; i < events / 2; ++i)
        process.span(Phase::kForward, process.now_ns() + 1, process.now_ns() + 2);
    };
    {
      Segments first(folder_, stored_);
      poll(first);
      commit(first);
      forwards(process.writer().capacity() * 3 / 4);
      poll(first);
      commit(first);
    }
    if (gone) forwards(process.writer().capacity() / 2);
    process.steps(2);
    Segments second(folder_, stored_);
    poll(second);
    commit(second);
    const RankHistory& rank = run_.ranks.back();
    EXPECT_EQ(rank.steps, 4);
    EXPECT_EQ(rank.raw[2].incomplete, gone);
    EXPECT_EQ(rank.raw[3].step, 3);
    EXPECT_FALSE(rank.raw[3].incomplete);
  }
}

TEST_F(SegmentsTest, WorkersAreCountedAndTheirFilesGoWhenTheyDo) {
  FakeProcess rank(folder_, 0), worker(folder_, 0, wire::kWorkerSegmentBytes, wire::Role::kWorker);
  rank.steps(1);
  worker.steps(4);
  Segments segments(folder_);
  poll(segments);
  EXPECT_EQ(segments.workers().processes, 1);
  EXPECT_EQ(segments.workers().records, 18);
  EXPECT_EQ(run_.ranks[0].steps, 1);
  EXPECT_EQ(run_.ranks[0].records_written, 6);
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
  EXPECT_EQ(run_.ranks[0].records_written, 24);
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
  EXPECT_TRUE(checkpoints().empty());
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
  EXPECT_EQ(checkpoints().size(), 1u);
  process.steps(3);
  poll(segments);
  EXPECT_EQ(run_.ranks[0].steps, 0);
}

TEST_F(SegmentsTest, TheEndClosesTheLastStepOfALivingProcess) {
  FakeProcess process(folder_, 0);
  process.steps(1);
  process.optimizer(process.now_ns() + 5, process.now_ns() + 50);
  Segments segments(folder_);
  segments.finish(run_, 5, batch_);
  ASSERT_EQ(run_.ranks[0].steps, 2);
  EXPECT_EQ(run_.ranks[0].raw[1].total_ns(), 50);
}

TEST_F(SegmentsTest, TheRestOfTraceStepIsNoStep) {
  FakeProcess process(folder_, 0);
  process.fact(kFactExplicitSteps);
  process.optimizer(process.now_ns() + 5, process.now_ns() + 50);
  Segments segments(folder_);
  segments.finish(run_, 5, batch_);
  EXPECT_EQ(run_.ranks[0].steps, 0);
}

TEST_F(SegmentsTest, NowIsKnownBeforeTheFirstStep) {
  FakeProcess process(folder_, -1);
  Segments segments(folder_);
  poll(segments);
  EXPECT_TRUE(segments.now().empty());
  process.write(wire::EventCode::kFetchBegin, 77, 1, wire::kGradOn);
  poll(segments);
  ASSERT_EQ(segments.now().size(), 1u);
  EXPECT_EQ(segments.now()[0].rank, 0);
  EXPECT_EQ(segments.now()[0].phase, "input");
  EXPECT_EQ(segments.now()[0].now.since_ns, 77);
  EXPECT_TRUE(segments.now()[0].alive);
  process.write(wire::EventCode::kFetchEnd, 78, 8);
  process.write(wire::EventCode::kBackwardBegin, 90);
  process.writer().head().writer.ready_ns.store(85);  // of the backward before
  poll(segments);
  EXPECT_EQ(segments.now()[0].phase, "backward");
  process.writer().head().writer.ready_ns.store(95);
  EXPECT_EQ(segments.now()[0].phase, "sync");
  EXPECT_EQ(segments.now()[0].now.since_ns, 95);
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
