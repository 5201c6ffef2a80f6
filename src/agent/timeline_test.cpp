#include "agent/timeline.h"

#include <gtest/gtest.h>

#include "agent/event_script.h"
#include "model/facts.h"

namespace stepscope::agent {
namespace {

// Plays events and tells the records they made.
class Player {
 public:
  // The records of these words: "input forward" ... in their order; [step], (mark), ! for raised.
  std::string told(const std::string& words) { return tell(records(words)); }

  std::vector<Record> records(const std::string& words) {
    const size_t from = script_.events.size();
    script_.play(words);
    std::vector<Record> out;
    for (size_t i = from; i < script_.events.size(); ++i) {
      const size_t made = out.size();
      timeline_.push(script_.events[i], out);
      for (size_t r = made; r < out.size(); ++r) EXPECT_EQ(out[r].index, i);
    }
    return out;
  }
  std::string finish() {
    std::vector<Record> out;
    timeline_.finish(script_.events.size(), out);
    return tell(out);
  }

  static std::string tell(const std::vector<Record>& records) {
    std::string text;
    for (const Record& r : records) {
      text += text.empty() ? "" : " ";
      if (r.kind == RecordKind::kStep)
        text += "[" + std::to_string(r.step) + "]";
      else if (r.kind == RecordKind::kStepBegin)
        text += "(begin)";
      else if (r.kind == RecordKind::kSync)
        text += "(sync point)";
      else if (r.kind == RecordKind::kZeroGrad)
        text += "(zero)";
      else if (r.kind == RecordKind::kOptimizerSkipped)
        text += "(skipped)";
      else if (r.kind == RecordKind::kRecomputed)
        text += "(recomputed " + std::to_string(r.t1_ns - r.t0_ns) + ")";
      else if (r.phase >= kFirstUserPhase)
        text += "user" + std::to_string(r.phase - kFirstUserPhase);
      else
        text += std::string(kPhaseNames[r.phase]);
      if (r.kind == RecordKind::kSpan && (r.flags & kSpanRaised)) text += "!";
    }
    return text;
  }
  static int flags_of_step(const std::vector<Record>& records) {
    for (const Record& r : records)
      if (r.kind == RecordKind::kStep) return r.flags;
    return -1;
  }
  Timeline& timeline() { return timeline_; }
  EventScript& script() { return script_; }
  std::string now() const {
    const Now now = timeline_.now();
    return std::string(kPhaseNames[now.phase]) + " " + std::to_string(now.step);
  }

 private:
  EventScript script_;
  Timeline timeline_;
};

const std::string kStep = "get L; zero; fwd; bwd; opt A;";
const std::string kRecords = "input (zero) forward backward optimizer";

TEST(Timeline, PlainStepsAreSpansAndStepRecords) {
  Player p;
  EXPECT_EQ(p.told(kStep), "(begin) " + kRecords);
  const auto second = p.records(kStep);
  EXPECT_EQ(Player::tell(second), "[0] " + kRecords);
  EXPECT_EQ(second[0].samples, 8u);
  EXPECT_EQ(second[0].counts.fetches, 1);
  EXPECT_EQ(second[0].counts.backwards, 1);
  EXPECT_EQ(second[0].counts.optimizer_steps, 1);
  EXPECT_EQ(second[0].flags, 0);
  EXPECT_EQ(second[0].t1_ns, second[1].t0_ns);  // the step ended at the fetch's entry
  EXPECT_EQ(second[1].step, 1u);
  EXPECT_EQ(second[1].t1_ns - second[1].t0_ns, 5);
  EXPECT_EQ(p.timeline().facts(), kFactDataLoader | kFactRootModule);
}

TEST(Timeline, WhatAnotherThreadFetchedBeforeIsNeitherALoaderOfOursNorAStepsTime) {
  Player p;
  p.records("it L; get L; get L; thread; bwd; opt A");
  EXPECT_EQ(p.timeline().facts() & kFactDataLoader, 0u);
  const auto all = p.records("fwd; bwd; opt A; fwd");
  const auto step = std::find_if(all.begin(), all.end(),
                                 [](const Record& r) { return r.kind == RecordKind::kStep; });
  ASSERT_NE(step, all.end());
  EXPECT_EQ(step->step, 0u);
  EXPECT_EQ(step->counts.fetches, 0);
}

TEST(Timeline, EpochStartAndExhaustionAreFlagged) {
  Player p;
  std::vector<int> flags;
  for (const Record& r : p.records("it L;" + kStep + "end L"))
    if (r.kind == RecordKind::kSpan && r.phase == 0) flags.push_back(r.flags);
  EXPECT_EQ(flags, (std::vector<int>{kSpanEpochStart, kSpanEpochStart, kSpanExhausted}));
}

TEST(Timeline, ExceptionsAreFlagged) {
  Player p;
  const auto all = p.records("get L; fwd raise; get L; opt( A; get( L");
  EXPECT_EQ(Player::tell(all), "(begin) input forward! [0] input optimizer! [1]");
  EXPECT_EQ(all[3].flags, kStepFailed);
  EXPECT_EQ(all[6].flags, kStepFailed);
  EXPECT_EQ(all[5].t1_ns, all[5].t0_ns);  // nothing was seen after its begin
}

TEST(Timeline, ReadyTellsTheWaitInsideBackward) {
  Player p;
  const auto all = p.records("bwd ready reduced; bwd");
  EXPECT_EQ(Player::tell(all), "(begin) sync (sync point) backward backward");
  EXPECT_EQ(all[1].t0_ns, all[3].t0_ns + 1);
  EXPECT_EQ(all[1].t1_ns, all[3].t1_ns);
  EXPECT_EQ(all[2].t0_ns, all[1].t0_ns);
  EXPECT_EQ(all[2].t1_ns, all[1].t1_ns);
  EXPECT_EQ(p.timeline().facts() & kFactReadyNotMeasured, 0u);
  EXPECT_EQ(p.told("bwd reduced raise"), "backward!");
  EXPECT_EQ(p.timeline().facts() & kFactReadyNotMeasured, 0u);
  EXPECT_EQ(p.told("bwd reduced"), "[0] backward");  // the failed one
  EXPECT_NE(p.timeline().facts() & kFactReadyNotMeasured, 0u);
}

TEST(Timeline, ReadyIsInsideItsBackward) {
  for (const uint64_t ready : {uint64_t{1}, uint64_t{5'000}, ~uint64_t{0}}) {
    Timeline timeline;
    std::vector<Record> out;
    timeline.push({.t_ns = 100, .code = wire::EventCode::kBackwardBegin}, out);
    timeline.push(
        {.t_ns = 200, .a = ready, .code = wire::EventCode::kBackwardEnd, .flags = wire::kReduced},
        out);
    ASSERT_EQ(Player::tell(out), "(begin) sync (sync point) backward");
    EXPECT_EQ(out[1].t0_ns, ready == 1 ? 100 : 200);
    EXPECT_EQ(out[1].t1_ns, 200);
  }
}

TEST(Timeline, AWaitMadeOfWaitsIsOne) {
  Player p;
  const auto all = p.records("sync( G; sync G; )sync; )sync");
  ASSERT_EQ(Player::tell(all), "sync (sync point)");
  EXPECT_EQ(all[0].t1_ns - all[0].t0_ns, 20);
}

TEST(Timeline, NowIsTheInnermostPhaseAndTheStep) {
  Player p;
  EXPECT_EQ(p.timeline().now().since_ns, 0);
  EXPECT_EQ(p.now(), "other 0");
  p.records(kStep + "get( L");
  EXPECT_EQ(p.now(), "input 1");
  EXPECT_EQ(p.timeline().now().since_ns, p.script().now_ns);
  p.records("begin gc");
  EXPECT_EQ(p.now(), "gc 1");
  p.records("end_phase gc");
  EXPECT_EQ(p.now(), "input 1");
  p.records(")get; eval");
  EXPECT_EQ(p.now(), "validation 1");
}

TEST(Timeline, ValidationIsASpan) {
  Player p;
  p.records(kStep);
  const auto inside = p.records("eval; get V off; fwd off");
  EXPECT_EQ(Player::tell(inside), "input forward");
  EXPECT_EQ(inside[0].flags, kSpanNotTraining);
  EXPECT_EQ(inside[1].flags, kSpanEvalForward);
  const auto after = p.records("train");
  EXPECT_EQ(Player::tell(after), "validation");
  EXPECT_LE(after[0].t0_ns, inside[0].t0_ns);
  EXPECT_GE(after[0].t1_ns, inside[1].t1_ns);
}

TEST(Timeline, AValidationInProgressIsGivenOutAtTheEnd) {
  Player p;
  p.records(kStep + "eval; fwd off");
  EXPECT_EQ(p.finish(), "validation");
  EXPECT_EQ(p.finish(), "");
}

TEST(Timeline, ACancelledPhaseLeavesNothing) {
  Player p;
  EXPECT_EQ(p.told("begin h2d; cancel h2d; cancel h2d; end_phase h2d"), "");
}

TEST(Timeline, SpansDeeperThanTheStackAreLostAndNothingElse) {
  Player p;
  EXPECT_EQ(p.records(repeat(100, "begin 32") + repeat(100, "end_phase 32")).size(),
            PhaseStack::kDepth);
  EXPECT_EQ(p.told(kStep), "(begin) " + kRecords);
}

TEST(Timeline, FlagsOfSteps) {
  Player p;
  const auto flags = [&](const std::string& words) {
    return Player::flags_of_step(p.records(words));
  };
  p.records(kStep + "span compile");
  EXPECT_EQ(flags(kStep), kStepCompiled);
  p.records("profile on");
  EXPECT_EQ(flags(kStep), kStepProfiled);
  p.records(kStep + "profile off");
  EXPECT_EQ(flags(kStep), kStepProfiled);
  EXPECT_EQ(flags(kStep), 0);
}

TEST(Timeline, APauseDropsWhatWasOpenAndFlagsTheStep) {
  Player p;
  p.records(kStep + "get( L");
  EXPECT_EQ(p.told("resumed; )get"), "");  // its begin was before
  const auto all = p.records(kStep + kStep);
  EXPECT_EQ(Player::tell(all), kRecords + " [1] " + kRecords);
  EXPECT_EQ(all[5].flags, kStepPaused);
}

TEST(Timeline, APauseInsideABlockDoesNotLoseItsExit) {
  Player p;
  const auto all = p.records("step(; resumed; )step; )step; step(; )step");
  EXPECT_EQ(Player::tell(all), "(begin) [0] (begin) [1]");
  EXPECT_EQ(all[1].flags, kStepPaused | kStepExplicit);
  EXPECT_EQ(all[3].flags, kStepExplicit);
  EXPECT_NE(p.timeline().facts() & kFactExplicitSteps, 0u);
}

TEST(Timeline, MissingEventsMakeTheStepIncompleteAndNothingIsOpenAfterThem) {
  Player p;
  p.records(kStep + "get L; fwd(; begin 32");
  const auto all = p.records("lost 3; )fwd; bwd; opt A;" + kStep + kStep);
  EXPECT_EQ(Player::tell(all), "backward optimizer [1] " + kRecords + " [2] " + kRecords);
  EXPECT_EQ(all[2].flags, kStepIncomplete);
  EXPECT_EQ(all[8].flags, 0);
}

TEST(Timeline, MissingEventsBeforeAFetchBelongToTheStepThatItEnds) {
  Player p;
  p.records(kStep);
  EXPECT_EQ(Player::flags_of_step(p.records("lost 1;" + kStep)), kStepIncomplete);
  EXPECT_EQ(Player::flags_of_step(p.records(kStep)), 0);
}

// One batch used again and again: its steps are given out sixteen at a time at first.
TEST(Timeline, AStepThatIsRecognisedLateIsIncompleteByItself) {
  Player p;
  p.records("get L;" + repeat(3, "fwd; bwd; opt A") + "fwd; lost 1; bwd; opt A;");
  std::vector<int> flags;
  for (const Record& r : p.records(repeat(16, "fwd; bwd; opt A")))
    if (r.kind == RecordKind::kStep) flags.push_back(r.flags);
  ASSERT_GE(flags.size(), 16u);
  for (size_t i = 0; i < flags.size(); ++i)
    EXPECT_EQ(flags[i], i == 3 ? int{kStepIncomplete} : 0) << i;
}

TEST(Timeline, TimesThatNoClockGivesAreMissingEvents) {
  Player p;
  p.records(kStep);
  std::vector<Record> out;
  for (const int64_t t_ns : {int64_t{-1}, INT64_MIN, INT64_MAX, kMaxTimeNs + 1})
    p.timeline().push({.t_ns = t_ns, .code = wire::EventCode::kForwardBegin}, out);
  p.timeline().push({.t_ns = INT64_MIN, .code = wire::EventCode::kForwardBegin, .device = 0}, out);
  EXPECT_TRUE(out.empty());
  EXPECT_EQ(Player::flags_of_step(p.records(kStep)), kStepIncomplete);
}

TEST(Timeline, AnotherDevicesEventIsNoneOfTheHosts) {
  Player p;
  p.records(kStep);
  std::vector<Record> out;
  p.timeline().push({.t_ns = -5, .code = wire::EventCode::kFetchBegin, .device = 0}, out);
  EXPECT_EQ(Player::flags_of_step(p.records(kStep)), 0);
}

TEST(Timeline, WhatAStepInProgressWouldBe) {
  Player p;
  p.records(kStep + "get L; fwd; bwd; get L unsized; bwd");
  Record rest = p.timeline().in_progress();
  EXPECT_EQ(rest.step, 1u);
  EXPECT_EQ(rest.counts.fetches, 2);
  EXPECT_EQ(rest.counts.backwards, 2);
  EXPECT_EQ(rest.counts.optimizer_steps, 0);
  EXPECT_EQ(rest.samples, wire::kUnmeasured);
  p.records("opt A;" + kStep);
  rest = p.timeline().in_progress();
  EXPECT_EQ(rest.step, 2u);
  EXPECT_EQ(rest.samples, 8u);
  // Boundaries that were noted and not given out are in it.
  Player kept;
  kept.records("get L;" + repeat(5, "fwd; bwd; opt A"));
  EXPECT_EQ(kept.timeline().in_progress().counts.optimizer_steps, 5);
}

TEST(Timeline, WhatWasComputedAgainBelongsToTheBackwardInProgress) {
  Player p;
  p.records(kStep + "get L; fwd; bwd(");
  EXPECT_EQ(p.told("wait 100; recomputed 60; )bwd"), "(recomputed 60) backward");
  EXPECT_EQ(p.told("recomputed 60"), "");  // in no backward
  EXPECT_EQ(p.told("bwd(; recomputed 18446744073709551615; )bwd"), "(recomputed 10) backward");
}

TEST(Timeline, SamplesThatNobodyCountsAreUnmeasured) {
  Player p;
  std::vector<Record> out;
  p.records("get( L");
  p.timeline().push(
      {.t_ns = p.script().now_ns + 1, .a = uint64_t{1} << 63, .code = wire::EventCode::kFetchEnd},
      out);
  EXPECT_EQ(p.timeline().in_progress().samples, wire::kUnmeasured);
  p.records("samples 5");
  EXPECT_EQ(p.timeline().in_progress().samples, 5u);
}

}  // namespace
}  // namespace stepscope::agent
