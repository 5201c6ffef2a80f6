// Loops whose loader ends before its batches are used up, is another than any before, or begins after
// the optimizer was used.
#include <gtest/gtest.h>

#include <string>

#include "agent/step_clock_scenario.h"

namespace stepscope::agent {
namespace {

TEST(StepClock, CycledBatchesAreAStepEachFromTheFirstRoundOn) {
  // itertools.cycle: the first round is fetched, the others are its batches again. Whatever ran
  // before in this process, and whatever comes after.
  const std::string cycle = "it C; get C; fwd; bwd; opt A; get C; fwd; bwd; opt A; end C;";
  const std::string again = repeat(5, "fwd; bwd; opt A");
  const std::string expected = "1/1/1 1/1/1 1/1/1 1/1/1 1/1/1 0/1/1 0/1/1 0/1/1 0/1/1 0/1/1";
  EXPECT_EQ(Scenario(epoch(3) + cycle + again + "it L; get L").steps(), expected);
  EXPECT_EQ(Scenario(cycle + repeat(40, "fwd; bwd; opt A") + "it L; get L").closed().size(), 42u);
}

TEST(StepClock, LastBatchOfALoopThatFetchesAheadIsOneStepWhateverItsOptimizers) {
  const std::string gan = "fwd; bwd; opt D; fwd; bwd; opt G;";
  const std::string ahead = "it L; get L; get L;" + gan + "get L;" + gan + "end L;" + gan;
  EXPECT_EQ(Scenario(ahead + ahead + "it L; get L").steps(), "2/2/2 1/2/2 0/2/2 2/2/2 1/2/2 0/2/2");
}

TEST(StepClock, ResumedTrainerAfterAPlainLoop) {
  // Its loader is another than any before, and it fetches a step's batches and one more at once.
  const std::string resumed = "it R; get R; get R; get R; train; fwd; bwd; fwd; bwd; opt A; zero;" +
                              repeat(3, "get R; get R; train; fwd; bwd; fwd; bwd; opt A; zero") +
                              "end R";
  EXPECT_EQ(Scenario(epoch(3) + resumed).steps(), "1/1/1 1/1/1 1/1/1 3/2/1 2/2/1 2/2/1 2/2/1");
}

TEST(StepClock, OptimizerStepBeforeAnythingIsComputedIsNoStep) {
  // DeepSpeed makes the optimizer's states by a step of zero gradients.
  EXPECT_EQ(Scenario("opt A; it L; get L; fwd; bwd; opt A; end L").steps(), "1/1/1");
  EXPECT_EQ(Scenario("opt A; opt A; fwd; bwd; opt A; fwd").steps(), "0/1/1");
  EXPECT_EQ(Scenario("opt A; fwd; bwd; opt A; fwd; bwd; opt A; fwd").steps(), "0/1/1 0/1/1");
  EXPECT_EQ(Scenario("opt A; step(; fwd; bwd; opt A; )step").steps(), "0/1/2*");
}

}  // namespace
}  // namespace stepscope::agent
