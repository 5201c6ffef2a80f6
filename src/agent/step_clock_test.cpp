#include "agent/step_clock.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "agent/step_clock_scenario.h"

namespace stepscope::agent {
namespace {

// --- the plain loop

TEST(StepClock, PlainLoopClosesAtTheNextFetchAndAtTheExhaustingOne) {
  Scenario s("it L; get L; fwd; bwd; opt A; get L; fwd; bwd; opt A; end L");
  EXPECT_EQ(s.steps(), "1/1/1 1/1/1");
  EXPECT_EQ(s.times(), "2-6 6-10");  // the first step begins at the first fetch
  EXPECT_EQ(s.closed()[0].samples, 8u);
  EXPECT_EQ(s.validations(), "");
}

TEST(StepClock, EpochsDoNotAddOrLoseSteps) {
  EXPECT_EQ(Scenario(epoch(3) + epoch(2) + epoch(1)).steps(),
            "1/1/1 1/1/1 1/1/1 1/1/1 1/1/1 1/1/1");
}

TEST(StepClock, WhatFollowsTheLastBatchIsInTheNextEpochsFirstStep) {
  Scenario s("it L; get L; fwd; bwd; opt A; end L; it L; get L; fwd; bwd; opt A; end L");
  EXPECT_EQ(s.times(), "2-6 6-12");
}

TEST(StepClock, EpochLeftByBreakClosesAtTheNextFetch) {
  EXPECT_EQ(Scenario("it L; get L; fwd; bwd; opt A; it L; get L; fwd; bwd; opt A; end L").steps(),
            "1/1/1 1/1/1");
}

TEST(StepClock, RestWithoutOptimizerStepIsNoStep) {
  EXPECT_EQ(Scenario("get L; fwd; bwd; opt A; get L; fwd; bwd; end L").steps(), "1/1/1");
}

TEST(StepClock, SamplesAddUpOverMicroStepsAndAreUnmeasuredWhenOneIs) {
  Scenario s(
      "get L; fwd; bwd; get L; fwd; bwd; opt A; get L; fwd; bwd; get L unsized; fwd; bwd; opt A; "
      "end L");
  EXPECT_EQ(s.closed()[0].samples, 16u);
  EXPECT_EQ(s.closed()[1].samples, wire::kUnmeasured);
}

// --- several of something in one iteration

TEST(StepClock, GradientAccumulation) {
  EXPECT_EQ(
      Scenario(
          repeat(2, "get L; fwd; bwd; get L; fwd; bwd; get L; fwd; bwd; get L; fwd; bwd; opt A"))
          .play("end L")
          .steps(),
      "4/4/1 4/4/1");
  // More micro-steps than boundaries are noted for loops whose optimizer is not seen.
  EXPECT_EQ(Scenario("zero;" + repeat(12, "get L; fwd; bwd") + "opt A;" +
                     repeat(12, "get L; fwd; bwd") + "opt A; end L")
                .steps(),
            "12/12/1 12/12/1");
}

TEST(StepClock, TwoOptimizersOfOneBatchAreOneStep) {
  const std::string gan = "get L; fwd; fwd; bwd; opt D; fwd; bwd; opt G";
  EXPECT_EQ(Scenario(repeat(3, gan) + "end L").steps(), "1/2/2 1/2/2 1/2/2");
}

TEST(StepClock, FiveCriticStepsABatchAreOneStep) {
  const std::string wgan = "get L;" + repeat(5, "fwd; bwd; opt D") + "fwd; bwd; opt G";
  EXPECT_EQ(Scenario(repeat(3, wgan) + "end L").steps(), "1/6/6 1/6/6 1/6/6");
}

TEST(StepClock, SeveralBackwardsOfOneForward) {
  EXPECT_EQ(Scenario(repeat(2, "get L; fwd; bwd; bwd; opt A") + "end L").steps(), "1/2/1 1/2/1");
}

TEST(StepClock, NestedOptimizersCountOnce) {
  EXPECT_EQ(Scenario("get L; fwd; bwd; opt( A; opt( A; )opt A; )opt A; end L").steps(),
            "1/1/1");  // super().step()
  EXPECT_EQ(Scenario("get L; opt( S; fwd; bwd; opt B; )opt S; end L").steps(), "1/1/1");  // SAM
}

TEST(StepClock, TwoLoadersZippedBothFeedTraining) {
  Scenario s(repeat(3, "get A; get B; fwd; bwd; opt O") + "end A");
  EXPECT_EQ(s.steps(), "2/1/1 2/1/1 2/1/1");
  EXPECT_EQ(s.closed()[2].samples, 16u);
  EXPECT_EQ(s.kinds, "TTTTTTT");
}

TEST(StepClock, LoaderInsideALoaderIsPartOfTheOuterFetch) {
  Scenario s(repeat(2, "get( L; get I; get I; )get L; fwd; bwd; opt A") + "end L");
  EXPECT_EQ(s.steps(), "1/1/1 1/1/1");
  EXPECT_EQ(s.kinds, "T..T..T");
}

TEST(StepClock, CheckpointingsForwardInsideBackwardIsNoForward) {
  EXPECT_EQ(Scenario(repeat(2, "get L; fwd; bwd(; fwd; fwd; )bwd; opt A") + "end L").steps(),
            "1/1/1 1/1/1");
}

TEST(StepClock, ForwardInsideBackwardDoesNotEndTheForwardAroundIt) {  // manual optimization
  StepClock clock;
  EXPECT_TRUE(clock.forward_begin(true, true, 10));
  EXPECT_TRUE(clock.backward_begin(20));
  EXPECT_FALSE(clock.forward_begin(true, true, 30));
  EXPECT_FALSE(clock.forward_end(false, 40));
  EXPECT_TRUE(clock.backward_end(false, 50));
  EXPECT_TRUE(clock.forward_end(false, 60));
}

TEST(StepClock, SecondBackwardOfAForwardIsNoStepOfItsOwnWithoutFetches) {
  EXPECT_EQ(Scenario(repeat(3, "fwd; bwd; opt A; zero; bwd; opt B") + "fwd").steps(),
            "0/2/2 0/2/2 0/2/2");
}

TEST(StepClock, NestedBackwardCountsOnce) {
  EXPECT_EQ(Scenario("get L; fwd; bwd(; bwd; )bwd; opt A; end L").steps(), "1/1/1");
}

TEST(StepClock, LightningRunsItsClosureInsideTheOptimizer) {
  EXPECT_EQ(Scenario(repeat(3, "get L; opt( A; fwd(; fwd; )fwd; bwd; )opt A") + "end L").steps(),
            "1/1/1 1/1/1 1/1/1");
}

TEST(StepClock, ClosureThatRunsForwardSeveralTimes) {
  EXPECT_EQ(Scenario(repeat(2, "get L; opt( A; zero; fwd; bwd; zero; fwd; bwd; )opt A") + "end L")
                .steps(),
            "1/2/1 1/2/1");
}

TEST(StepClock, PrefetchingLoopShiftsBoundariesNotCounts) {
  Scenario s("it L; get L; get L;" + repeat(3, "fwd; bwd; opt A; get L") +
             "fwd; bwd; opt A; end L; fwd; bwd; opt A;" + "it L; get L");
  EXPECT_EQ(s.closed().size(), 5u);
  for (const ClosedStep& step : s.closed()) EXPECT_EQ(step.counts.optimizer_steps, 1);
}

TEST(StepClock, PrefetchingTrainerWithEvaluationsAndLateTrainCall) {
  // As a transformers Trainer with accelerate does it: fetches one batch ahead, calls train() in
  // each step.
  const auto train_epoch = [](int batches, const std::string& evaluation) {
    std::string text = "it L; get L;";
    for (int i = 1; i < batches; ++i)
      text += "get L; train; fwd; bwd; opt A; zero;" + (i == 2 ? evaluation : "");
    return text + "end L; train; fwd; bwd; opt A; zero;";
  };
  const std::string evaluation =
      "eval; it V; get V; get V; fwd off; get V; fwd off; end V; fwd off;";
  Scenario s(train_epoch(5, evaluation) + evaluation + train_epoch(5, evaluation) + evaluation +
             "it L; get L; train; fwd; bwd");
  ASSERT_EQ(s.closed().size(), 10u);
  uint64_t samples = 0;
  for (const ClosedStep& step : s.closed()) {
    EXPECT_EQ(step.counts.backwards, 1);
    EXPECT_EQ(step.counts.optimizer_steps, 1);
    ASSERT_NE(step.samples, wire::kUnmeasured);
    samples += step.samples;
  }
  EXPECT_EQ(samples, 10u * 8);  // the last of an epoch has none, the first two
  EXPECT_EQ(s.closed()[4].samples, 0u);
}

TEST(StepClock, LightningWithSanityCheckAndValidationEachEpoch) {
  const std::string validation =
      "eval; it V off; get V off; fwd off; get V off; fwd off; end V off;";
  const std::string fit = "it L;" + repeat(4, "get L; opt( A; fwd; zero; bwd; )opt A") + "end L;";
  Scenario s(validation + repeat(3, fit + validation));
  EXPECT_EQ(s.closed().size(), 12u);
  for (const ClosedStep& step : s.closed()) EXPECT_EQ(step.samples, 8u);
}

// --- skipped and failed

TEST(StepClock, SkippedOptimizerStepEndsTheStepToo) {
  EXPECT_EQ(Scenario("get L; fwd; bwd; skip; get L; fwd; bwd; opt A; end L").steps(),
            "1/1/0+1 1/1/1");
}

TEST(StepClock, ExceptionCaughtWithContinueIsAFailedStep) {
  EXPECT_EQ(Scenario("get L; fwd raise; get L; fwd; bwd; opt A; get L; fwd; bwd raise; get L; fwd; "
                     "bwd; opt A; end L")
                .steps(),
            "1/0/0! 1/1/1 1/1/0! 1/1/1");
}

TEST(StepClock, ExceptionInTheOptimizerHasNoEndAndIsAFailedStep) {
  Scenario s("get L; fwd; bwd; opt( A; get L; fwd; bwd; opt A; end L");
  EXPECT_EQ(s.steps(), "1/1/0! 1/1/1");
  EXPECT_EQ(s.dropped_optimizers(), 1);
}

TEST(StepClock, ExceptionInAClosureIsAFailedStep) {
  EXPECT_EQ(Scenario("get L; opt( A; fwd raise; get L; opt( A; fwd; bwd; )opt A; end L").steps(),
            "1/0/0! 1/1/1");
}

TEST(StepClock, FirstOfTwoOptimizersRaised) {
  EXPECT_EQ(Scenario("get L; fwd; bwd; opt( D; fwd; bwd; opt G; get L; fwd; bwd; opt D; fwd; bwd; "
                     "opt G; end L")
                .steps(),
            "1/2/0! 1/2/2");
}

TEST(StepClock, FetchThatRaisesIsNoFailure) {
  EXPECT_EQ(Scenario("get L; fwd; bwd; opt A; get L raise; get L; fwd; bwd; opt A; end L").steps(),
            "1/1/1 1/1/1");
}

TEST(StepClock, OptimizerThatRaisedIsForgottenAtItsNextStepInALoopWithoutFetches) {
  Scenario s("fwd; bwd; opt( A; fwd; bwd; opt A; fwd; bwd; opt A; fwd");
  EXPECT_EQ(s.steps(), "0/2/1! 0/1/1");
  EXPECT_EQ(s.dropped_optimizers(), 1);
}

TEST(StepClock, ExceptionWithoutAnyFetchClosesAtTheNextForward) {
  EXPECT_EQ(Scenario("fwd; bwd; opt A; fwd raise; fwd; bwd; opt A; fwd").steps(),
            "0/1/1 0/0/0! 0/1/1");
}

// --- loops without a loader

TEST(StepClock, WithoutFetchesAStepEndsAtTheNextForward) {
  Scenario s("zero; fwd; bwd; opt A; zero; fwd; bwd; opt A; zero; fwd");
  EXPECT_EQ(s.steps(), "0/1/1 0/1/1");
  EXPECT_EQ(s.times(), "2-6 6-10");
}

TEST(StepClock, OptimizerThatIsCompiledInMidRunLosesNoStep) {
  for (const std::string loop : {"get L; fwd; bwd; ", "fwd; bwd; "}) {
    Scenario s(repeat(5, loop + "opt A; ") + repeat(40, loop) + repeat(5, loop + "opt A; ") +
               "end L; fwd");
    EXPECT_EQ(s.closed().size(), 50u) << loop;
  }
}

TEST(StepClock, AccumulationOverManyBatchesIsNoCompiledOptimizer) {
  Scenario s(repeat(3, repeat(12, "get L; fwd; bwd; ") + "opt A; ") +
             repeat(2, repeat(40, "get L; fwd; bwd; ") + "opt A; ") + "end L");
  EXPECT_EQ(s.steps(), "12/12/1 12/12/1 12/12/1 40/40/1 40/40/1");
}

TEST(StepClock, ClosureOfManyForwardsIsNoCompiledOptimizer) {
  Scenario s(repeat(4, "get L; opt( A; " + repeat(25, "zero; fwd; bwd; ") + ")opt A; ") + "end L");
  EXPECT_EQ(s.steps(), "1/25/1 1/25/1 1/25/1 1/25/1");
  EXPECT_EQ(Scenario(repeat(4, "opt( A; " + repeat(25, "zero; fwd; bwd; ") + ")opt A; ")).steps(),
            "0/25/1 0/25/1 0/25/1");
}

TEST(StepClock, WithoutFetchesAClosuresStepEndsAtTheOptimizersEntry) {
  Scenario s(repeat(3, "opt( A; zero; fwd; bwd; fwd; bwd; )opt A"));
  EXPECT_EQ(s.steps(), "0/2/1 0/2/1");
  EXPECT_EQ(s.times(), "1-8 8-15");
}

TEST(StepClock, FunctionalLoopWithoutRootModulesEndsAtZeroGrad) {
  Scenario s(repeat(4, "zero; wait; bwd; opt A"));
  EXPECT_EQ(s.steps(), "0/1/1 0/1/1 0/1/1");
  EXPECT_EQ(Scenario(repeat(4, "wait; zero; bwd; opt A")).steps(),
            "0/1/1 0/1/1 0/1/1");  // zero_grad late
  EXPECT_EQ(Scenario(repeat(4, "get L; bwd; opt A") + "end L").steps(), "1/1/1 1/1/1 1/1/1 1/1/1");
  EXPECT_EQ(Scenario(repeat(4, "opt( A; zero; bwd; zero; bwd; )opt A")).steps(),
            "0/2/1 0/2/1 0/2/1");
}

TEST(StepClock, OneBatchUsedAgainAndAgainGivesEveryStep) {
  Scenario s("it L; get L;" + repeat(30, "zero; fwd; bwd; opt A"));
  ASSERT_EQ(s.closed().size(), 29u);
  for (size_t i = 0; i < s.closed().size(); ++i) {
    EXPECT_EQ(s.closed()[i].counts.backwards, 1) << i;
    EXPECT_EQ(s.closed()[i].counts.optimizer_steps, 1) << i;
    EXPECT_EQ(s.closed()[i].counts.fetches, i == 0 ? 1 : 0) << i;
    EXPECT_EQ(s.closed()[i].samples, i == 0 ? 8 : wire::kUnmeasured) << i;
  }
}

TEST(StepClock, BatchesKeptInAListGiveEveryStep) {
  Scenario s("it L;" + repeat(5, "get L") + "end L;" + repeat(7, "fwd; bwd; opt A"));
  EXPECT_EQ(s.steps(), "0/1/1 0/1/1 0/1/1 0/1/1 0/1/1 0/1/1");
}

TEST(StepClock, LoopWhoseOptimizerIsNotSeenGivesEveryStep) {
  Scenario s(repeat(40, "get L; zero; fwd; bwd") + "end L");
  ASSERT_EQ(s.closed().size(), 40u);
  for (const ClosedStep& step : s.closed()) {
    EXPECT_EQ(step.counts.fetches, 1);
    EXPECT_EQ(step.counts.backwards, 1);
    EXPECT_EQ(step.samples, 8u);
  }
  EXPECT_EQ(Scenario(repeat(40, "zero; fwd; bwd")).closed().size(), 39u);  // and no fetch either
}

TEST(StepClock, OptimizerSeenLateIsBelieved) {
  Scenario s(repeat(3, "get L; fwd; bwd") + "opt A;" + repeat(20, "get L; fwd; bwd; opt A") +
             "end L");
  EXPECT_EQ(s.closed().size(), 21u);
  EXPECT_EQ(s.closed()[0].counts.backwards, 3);
}

// --- peeks

TEST(StepClock, PeekBeforeTrainingIsNotInTheFirstStep) {
  Scenario s("it L; get L; fwd off; it L; get L; fwd; bwd; opt A; get L; fwd; bwd; opt A; end L");
  EXPECT_EQ(s.steps(), "1/1/1 1/1/1");
  EXPECT_EQ(s.times(), "5-9 9-13");
}

TEST(StepClock, LoaderForgottenForItsPeeksFeedsTrainingOnceItDoes) {
  Scenario s(epoch(2) + "it V; get V; it V; get V; it V;" + repeat(6, "get V; fwd; bwd; opt A") +
             "end V");
  ASSERT_GE(s.closed().size(), 7u);  // its first two may be taken for one
  for (size_t i = 4; i < 7; ++i) EXPECT_EQ(s.closed()[i].counts.fetches, 1) << i;
}

TEST(StepClock, PeekIntoAnotherLoaderAddsNoStepAndNoBatch) {
  Scenario s(epoch(3) +
             "it L; get L; fwd; bwd; opt A; it V; get V; get L; fwd; bwd; opt A; get L; fwd; bwd; "
             "opt A; end L");
  EXPECT_EQ(s.steps(), "1/1/1 1/1/1 1/1/1 1/1/1 1/1/1 1/1/1");
}

TEST(StepClock, LoaderThatJoinsLaterFeedsTrainingFromItsSecondBackwardOn) {
  Scenario s(epoch(2) + repeat(4, "get L; get U; fwd; bwd; opt A") + "end L");
  EXPECT_EQ(s.steps(), "1/1/1 1/1/1 1/1/1 2/1/1 2/1/1 2/1/1");
}

// --- validation

TEST(StepClock, EvalAndTrainAroundAValidation) {
  Scenario s(epoch(1) + "eval; it V; get V; fwd off; get V; fwd off; end V; train;" + epoch(1));
  EXPECT_EQ(s.steps(), "1/1/1 1/1/1");
  EXPECT_EQ(s.validations(), "8-15");
  EXPECT_EQ(s.kinds, "TTnnnTT");
}

TEST(StepClock, ValidationWithoutNoGrad) {
  Scenario s(epoch(1) + "eval; it V; get V; fwd eval; get V; fwd eval; end V; train;" + epoch(1));
  EXPECT_EQ(s.steps(), "1/1/1 1/1/1");
  EXPECT_EQ(s.validations(), "8-15");
}

TEST(StepClock, ValidationWithoutEval) {
  Scenario s(epoch(2) + "it V off; get V off; fwd off; get V off; fwd off; end V off;" + epoch(2));
  EXPECT_EQ(s.steps(), "1/1/1 1/1/1 1/1/1 1/1/1");
  EXPECT_EQ(s.validations(), "13-19");
}

TEST(StepClock, ValidationWithNoGradAroundTheForwardOnly) {
  Scenario s(epoch(2) + "it V; get V; fwd off; get V; fwd off; end V;" + epoch(2));
  EXPECT_EQ(s.steps(), "1/1/1 1/1/1 1/1/1 1/1/1");
  EXPECT_EQ(s.validations(), "13-19");
}

TEST(StepClock, ValidationWithNeitherIsForgottenAsTraining) {
  const std::string validation = "it V;" + repeat(4, "get V; fwd") + "end V;";
  Scenario s(epoch(2) + validation + epoch(2) + validation + epoch(1));
  EXPECT_EQ(s.steps(), "1/1/1 1/1/1 1/1/1 1/1/1 1/1/1");
}

TEST(StepClock, UnknownLoaderIsForgottenAtItsThirdFetchWithoutBackward) {
  Scenario s(epoch(2) + repeat(4, "get V; fwd") + "get L; fwd; bwd; opt A; get V; get L");
  EXPECT_EQ(s.kinds, "TTTTTnnTnT");
  EXPECT_EQ(s.steps(), "1/1/1 1/1/1 1/1/1");
}

TEST(StepClock, ForgottenLoaderFetchedAfterEachStepStaysForgotten) {
  Scenario s(epoch(2) + "it V; get V; fwd; get V; fwd; end V;" +
             repeat(5, "get L; fwd; bwd; opt A; get V; fwd") + "end L");
  EXPECT_EQ(s.steps(), "1/1/1 1/1/1 1/1/1 1/1/1 1/1/1 1/1/1 1/1/1");
}

TEST(StepClock, ValidationInMidEpochAddsNoStep) {
  Scenario s(repeat(2, "get L; fwd; bwd; opt A") +
             "eval; get V; fwd off; end V; train; get L; fwd; bwd; opt A; end L");
  EXPECT_EQ(s.steps(), "1/1/1 1/1/1 1/1/1");
  EXPECT_EQ(s.times(), "1-5 5-14 14-18");  // it belongs to the step that it follows
  EXPECT_EQ(s.validations(), "9-13");
}

TEST(StepClock, ModeRestoredByAssignment) {  // Lightning
  Scenario s(epoch(1) + "eval; get V; fwd off; end V;" + epoch(1));
  EXPECT_EQ(s.steps(), "1/1/1 1/1/1");
  EXPECT_EQ(s.validations(), "8-12");  // up to the training loader's start
}

TEST(StepClock, TrainCalledAfterTheFetch) {  // Trainer calls train() in each training step
  Scenario s(repeat(2, "get L; train; fwd; bwd; opt A") +
             "eval; get V; fwd off; end V; get L; train; fwd; bwd; opt A; end L");
  EXPECT_EQ(s.steps(), "1/1/1 1/1/1 1/1/1");
  EXPECT_EQ(s.validations(), "11-15");
  EXPECT_EQ(s.times(), "1-6 6-15 15-20");
}

TEST(StepClock, ValidationBeforeTraining) {
  Scenario s(
      "eval; it V; get V; fwd off; get V; fwd off; train; it L; get L; fwd; bwd; opt A; end L");
  EXPECT_EQ(s.steps(), "1/1/1");
  EXPECT_EQ(s.times(), "9-13");
  EXPECT_EQ(s.validations(), "1-7");
}

TEST(StepClock, ValidationBeforeTrainingWithoutTrainCall) {
  Scenario s(
      "eval; get V; fwd off; get V; fwd off; get L; fwd; bwd; opt A; get L; fwd; bwd; opt A; end "
      "L");
  EXPECT_EQ(s.steps(), "1/1/1 1/1/1");
  EXPECT_EQ(s.times(), "6-10 10-14");
  EXPECT_EQ(s.validations(), "1-6");
}

TEST(StepClock, TrainingInEvalModeIsTraining) {  // frozen BatchNorm
  Scenario s("eval;" + repeat(3, "get L; fwd eval; bwd; opt A") + "end L");
  EXPECT_EQ(s.steps(), "1/1/1 1/1/1 1/1/1");
  EXPECT_EQ(s.validations(), "");
  EXPECT_EQ(s.times(), "2-6 6-10 10-14");
}

TEST(StepClock, EvalCalledInEachTrainingStep) {
  Scenario s(repeat(3, "get L; eval; fwd eval; bwd; opt A") + "end L");
  EXPECT_EQ(s.steps(), "1/1/1 1/1/1 1/1/1");
  EXPECT_EQ(s.validations(), "");
  Scenario before(repeat(3, "eval; get L; fwd eval; bwd; opt A") + "end L");
  EXPECT_EQ(before.steps(), "1/1/1 1/1/1 1/1/1");
  EXPECT_EQ(before.validations(), "");
}

TEST(StepClock, EvaluationOnTrainingDataIsValidation) {
  const std::string evaluation = "eval; it L; get L; fwd off; get L; fwd off; end L; train;";
  Scenario s(epoch(2) + evaluation + epoch(2) + evaluation + epoch(1));
  EXPECT_EQ(s.steps(), "1/1/1 1/1/1 1/1/1 1/1/1 1/1/1");
  EXPECT_EQ(s.validations(), "13-20 33-40");
}

TEST(StepClock, ValidationWithoutLoader) {
  Scenario s(epoch(2) + "fwd off; fwd off;" + epoch(1));
  EXPECT_EQ(s.steps(), "1/1/1 1/1/1 1/1/1");
  EXPECT_EQ(s.validations(), "13-15");
}

TEST(StepClock, TeacherOrADatasetsModelIsNoValidation) {
  const std::string get = "get( L; eval; fwd off; train; )get;";
  Scenario asked("it L;" + repeat(3, get + "fwd; bwd; opt A") + "eval;" + get + "fwd off; train");
  EXPECT_EQ(asked.validations(), "26-33");
  Scenario s(repeat(4, "get L; fwd off; fwd; bwd; opt A") + "end L");
  EXPECT_EQ(s.steps(), "1/1/1 1/1/1 1/1/1 1/1/1");
  EXPECT_EQ(s.validations(), "");
}

TEST(StepClock, CompiledValidationThatShowsNothingIsSeenByEvalAndTrain) {
  Scenario s(epoch(1) + "eval; wait; train;" + epoch(1));
  EXPECT_NE(s.validations(), "");
  EXPECT_EQ(Scenario(epoch(1) + "eval; train;" + epoch(1)).validations(), "");
}

TEST(StepClock, ExceptionInValidationFailsNoStep) {
  EXPECT_EQ(Scenario(epoch(1) + "eval; get V; fwd off raise; train;" + epoch(1)).steps(),
            "1/1/1 1/1/1");
}

TEST(StepClock, ValidationInProgressIsGivenOutAtTheEnd) {
  Scenario s(epoch(1) + "eval; get V; fwd off; get V; fwd off");
  s.clock().finish(1'000'000);
  ASSERT_TRUE(s.clock().decided().validation_ended);
  EXPECT_EQ(s.clock().decided().validation_begin_ns, 80);
  EXPECT_EQ(s.clock().decided().validation_end_ns, 125);  // the end of the last forward
}

// --- explicit steps

TEST(StepClock, TraceStepMakesTheSteps) {
  Scenario s(repeat(3, "get L; step(; fwd; bwd; opt A; )step") + "end L");
  EXPECT_EQ(s.steps(), "1/1/1* 1/1/1* 1/1/1*");
  EXPECT_EQ(s.times(), "1-6 6-12 12-18");  // the fetch before the block belongs to it
}

TEST(StepClock, TraceStepUnderAccumulationIsOneStepABlock) {
  EXPECT_EQ(
      Scenario(repeat(2, "get L; step(; fwd; bwd; )step; get L; step(; fwd; bwd; opt A; )step"))
          .steps(),
      "1/1/0* 1/1/1* 1/1/0* 1/1/1*");
}

TEST(StepClock, TraceStepNestedIsIgnored) {
  Scenario s(repeat(2, "step(; get L; step(; fwd; bwd; )step; opt A; )step"));
  EXPECT_EQ(s.steps(), "1/1/1* 1/1/1*");
}

TEST(StepClock, TraceStepLeftByAnExceptionIsFailed) {
  EXPECT_EQ(Scenario("step(; get L; fwd; )step raise; step(; get L; fwd raise; )step; step(; get "
                     "L; fwd; bwd; opt A; )step")
                .steps(),
            "1/0/0!* 1/0/0!* 1/1/1*");
}

TEST(StepClock, TraceStepAfterAutomaticStepsTakesOver) {
  EXPECT_EQ(Scenario(repeat(2, "get L; fwd; bwd; opt A") +
                     "get L; step(; fwd; bwd; opt A; )step; get L; get L")
                .steps(),
            "1/1/1 1/1/1 1/1/1*");
}

TEST(StepClock, OptimizerThatRaisedInsideABlockDoesNotOutliveIt) {
  EXPECT_EQ(Scenario("step(; fwd; bwd; opt( A; )step raise; step(; fwd; bwd; opt A; )step").steps(),
            "0/1/0!* 0/1/1*");
}

// --- whatever comes

TEST(StepClock, SurvivesAnyOrderOfEvents) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::vector<std::string> events = {
      "it L",      "it V off",    "get L", "get V",    "get V off", "get W",      "end L",
      "end V",     "get L raise", "fwd",   "fwd eval", "fwd off",   "fwd raise",  "bwd",
      "bwd raise", "opt A",       "opt B", "opt( A",   ")opt A",    "opt( B",     ")opt B",
      "skip",      "zero",        "eval",  "train",    "fwd(",      ")fwd",       "bwd(",
      ")bwd",      "get( L",      ")get",  "step(",    ")step",     ")step raise"};
  for (int run = 0; run < 200; ++run) {
    // half of them without trace_step
    const size_t known = run % 2 == 0 ? events.size() : events.size() - 3;
    Scenario s("");
    for (int i = 0; i < 300; ++i) s.play(events[random() % known]);
  }
}

TEST(StepClock, ManyLoadersPassThroughTheTable) {
  std::string text;
  for (int e = 0; e < 100; ++e) {
    const std::string loader = "L" + std::to_string(e);
    text += "it " + loader + ";" + repeat(3, "get " + loader + "; fwd; bwd; opt A") + "end " +
            loader + ";";
  }
  EXPECT_EQ(Scenario(text).closed().size(), 300u);
}

}  // namespace
}  // namespace stepscope::agent
