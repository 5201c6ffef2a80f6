#include "engine/measured.h"

#include <gtest/gtest.h>

namespace stepscope::engine {
namespace {

RunHistory run_of(int ranks, int world, uint32_t facts, int64_t forward_ns = 5) {
  RunHistory run;
  for (int r = 0; r < ranks; ++r) {
    RankHistory& rank = run.ranks.emplace_back();
    rank.rank = r;
    rank.world_size = world;
    rank.facts = facts;
    StepSample step;
    step.rank = r;
    step[Phase::kForward] = forward_ns;
    step[Phase::kBackward] = 10;
    step.end_ns = forward_ns + 10;
    (void)rank.add(std::move(step), run.settings);
  }
  return run;
}

TEST(Measured, NothingWithoutSteps) {
  EXPECT_EQ(why_not_measured({}, Phase::kForward), "no training step was seen");
}

TEST(Measured, InputNeedsALoaderOrTime) {
  EXPECT_EQ(why_not_measured(run_of(1, 1, 0), Phase::kInput), "no DataLoader was seen");
  EXPECT_FALSE(why_not_measured(run_of(1, 1, kFactDataLoader), Phase::kInput));
  RunHistory marked = run_of(1, 1, 0);
  marked.ranks[0].raw[0][Phase::kInput] = 3;
  EXPECT_FALSE(why_not_measured(marked, Phase::kInput));
}

TEST(Measured, SyncNeedsSeveralRanksAndReady) {
  EXPECT_EQ(why_not_measured(run_of(1, 1, 0), Phase::kSync), "not applicable: one rank");
  EXPECT_FALSE(why_not_measured(run_of(2, 2, kFactDdp), Phase::kSync));
  EXPECT_TRUE(why_not_measured(run_of(2, 2, kFactReadyNotMeasured), Phase::kSync));
}

TEST(Measured, DeviceTimesAreNot) {
  const RunHistory run = run_of(2, 2, kFactAccelerator | kFactDataLoader);
  EXPECT_TRUE(host_time_only(run));
  EXPECT_EQ(why_not_measured(run, Phase::kH2d), "device time not measured");
  EXPECT_EQ(why_not_measured(run, Phase::kSync), "device time not measured");
  EXPECT_FALSE(why_not_measured(run, Phase::kInput));
  EXPECT_FALSE(why_not_measured(run, Phase::kOther));
}

TEST(Measured, ForwardThatNobodySaw) {
  EXPECT_TRUE(why_not_measured(run_of(1, 1, 0, 0), Phase::kForward));
  EXPECT_FALSE(why_not_measured(run_of(1, 1, 0), Phase::kForward));
}

TEST(Measured, UnseenRanks) {
  EXPECT_EQ(unseen_ranks(run_of(2, 5, 0)), (std::vector<int32_t>{2, 3, 4}));
  RunHistory lone = run_of(1, 1, 0);
  lone.ranks[0].rank = -1;
  EXPECT_TRUE(unseen_ranks(lone).empty());
  EXPECT_EQ(world_size(lone), 1);
}

}  // namespace
}  // namespace stepscope::engine
