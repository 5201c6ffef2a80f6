#include "agent/fold.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>

namespace stepscope::agent {
namespace {

// Records written as text, steps and occurrences read back as text.
//
//   span PHASE T0 T1 [FLAG]...    PHASE: a name, "user:NAME", or a number
//   mark zero_grad|skipped|step_begin T
//   step T0 T1 [FLAG|samples=N|counts=F,B,O,S]...      numbered from 0
//   finish [FLAG|samples=N|counts=F,B,O,S]...          what the rest would be as a step
//   explicit | resume T
// A line of output has what is not zero.
class Scenario {
 public:
  explicit Scenario(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      if (std::string verb; words >> verb) play(verb, words);
    }
  }

  std::string steps() const {
    std::ostringstream text;
    for (const StepSample& s : out_.steps) {
      text << s.step << " [" << s.begin_ns << "," << s.end_ns << ")";
      int64_t sum = 0;
      for (size_t i = 0; i < kPhaseCount; ++i) {
        sum += s.phase_ns[i];
        if (s.phase_ns[i] != 0) text << " " << kPhaseNames[i] << "=" << s.phase_ns[i];
      }
      for (const auto& [name, ns] : s.user_phase_ns) {
        sum += ns;
        text << " '" << name << "'=" << ns;
      }
      EXPECT_EQ(sum, s.total_ns());
      parts(text, s.parts);
      for (const auto& [name, on] : std::map<std::string, bool>{{"failed", s.failed},
                                                                {"profiled", s.profiled},
                                                                {"compiled", s.compiled},
                                                                {"paused", s.paused},
                                                                {"incomplete", s.incomplete}})
        if (on) text << " " << name;
      if (s.samples) text << " samples=" << *s.samples;
      if (s.fetches + s.backwards + s.optimizer_steps + s.skipped_steps != 0)
        text << " counts=" << s.fetches << "," << s.backwards << "," << s.optimizer_steps << ","
             << s.skipped_steps;
      text << "\n";
    }
    return text.str();
  }

  std::string occurrences() const {
    static const std::array<std::string, kOccurrenceKinds> names = {
        "epoch_start", "checkpoint", "validation", "compile", "profiler"};
    std::ostringstream text;
    for (const Occurrence& o : out_.occurrences)
      text << names[static_cast<size_t>(o.kind)] << " " << o.begin_ns << " " << o.end_ns << "\n";
    return text.str();
  }

  const Fold& fold() const { return fold_; }

 private:
  static void parts(std::ostream& text, const StepParts& p) {
    const std::pair<const char*, int64_t> all[] = {{"loss", p.loss_ns},
                                                   {"recompute", p.recompute_ns},
                                                   {"epoch_start", p.epoch_start_ns},
                                                   {"before_forward", p.other_before_forward_ns},
                                                   {"after_backward", p.other_after_backward_ns},
                                                   {"after_optimizer", p.other_after_optimizer_ns},
                                                   {"between_steps", p.other_between_steps_ns}};
    for (const auto& [name, ns] : all)
      if (ns != 0) text << " (" << name << "=" << ns << ")";
  }

  uint8_t phase(const std::string& word) {
    if (const auto built_in = phase_from_name(word)) return static_cast<uint8_t>(*built_in);
    if (word.rfind("user:", 0) != 0) return static_cast<uint8_t>(std::stoi(word));
    auto at = std::find(users_.begin(), users_.end(), word.substr(5));
    if (at == users_.end()) at = users_.insert(at, word.substr(5));
    return static_cast<uint8_t>(kFirstUserPhase + (at - users_.begin()));
  }

  void play(const std::string& verb, std::istringstream& words) {
    Record r;
    r.step = step_;
    if (verb == "explicit") return fold_.set_explicit();
    if (verb == "resume") return fold_.resume(static_cast<int64_t>(number(words)));
    std::string word;
    if (verb == "span") {
      words >> word;
      r.phase = phase(word);
    } else if (verb == "recomputed") {
      r.kind = RecordKind::kRecomputed;
    } else if (verb == "mark") {
      words >> word;
      r.kind = marks().at(word);
    } else {
      r.kind = RecordKind::kStep;
    }
    if (verb != "finish") words >> r.t0_ns;
    r.t1_ns = r.t0_ns;
    if (verb == "span" || verb == "step" || verb == "recomputed") words >> r.t1_ns;
    if (verb == "step") ++step_;
    while (words >> word) option(word, r);
    if (verb == "finish") return fold_.finish(r, out_);
    r.index = index_++;
    fold_.push(r, out_);
  }

  static void option(const std::string& word, Record& r) {
    if (word.rfind("samples=", 0) == 0) {
      r.samples = std::stoull(word.substr(8));
    } else if (word.rfind("counts=", 0) == 0) {
      std::istringstream numbers(word.substr(7));
      StepCounts& c = r.counts;
      char comma;
      numbers >> c.fetches >> comma >> c.backwards >> comma >> c.optimizer_steps >> comma >>
          c.skipped_steps;
    } else {
      r.flags = static_cast<uint8_t>(r.flags | flags().at(word));
    }
  }

  static uint64_t number(std::istringstream& words) {
    uint64_t n = 0;
    words >> n;
    return n;
  }
  static const std::map<std::string, int>& flags() {
    static const std::map<std::string, int> all = {
        {"raised", kSpanRaised},          {"exhausted", kSpanExhausted},
        {"epoch_start", kSpanEpochStart}, {"not_training", kSpanNotTraining},
        {"eval", kSpanEvalForward},       {"failed", kStepFailed},
        {"explicit", kStepExplicit},      {"profiled", kStepProfiled},
        {"compiled", kStepCompiled},      {"paused", kStepPaused},
        {"incomplete", kStepIncomplete}};
    return all;
  }
  static const std::map<std::string, RecordKind>& marks() {
    static const std::map<std::string, RecordKind> all = {
        {"skipped", RecordKind::kOptimizerSkipped},
        {"zero_grad", RecordKind::kZeroGrad},
        {"step_begin", RecordKind::kStepBegin}};
    return all;
  }

  std::vector<std::string> users_;
  Fold fold_{0,
             {.name_of = [this](uint8_t number) { return users_.at(number - kFirstUserPhase); },
              .group_of = [](uint32_t number) -> std::optional<ring::GroupValue> {
                if (number != 1) return std::nullopt;
                return ring::GroupValue{.id = 77, .members = 4};
              }}};
  Folded out_;
  uint64_t index_ = 0;
  uint32_t step_ = 0;
};

std::string steps(const std::string& text) { return Scenario(text).steps(); }
std::string occurrences(const std::string& text) { return Scenario(text).occurrences(); }

TEST(Fold, APlainStep) {
  EXPECT_EQ(steps(R"(
    span input 0 10
    span forward 12 40
    span backward 50 80
    span optimizer 85 95
    step 0 100 samples=32 counts=1,1,1,0)"),
            "0 [0,100) input=10 forward=38 backward=30 optimizer=10 other=12 (loss=10) "
            "(before_forward=2) "
            "(after_backward=5) (after_optimizer=5) samples=32 counts=1,1,1,0\n");
}

TEST(Fold, StepsFollowEachOther) {
  EXPECT_EQ(steps(R"(
    span input 0 10
    step 0 20
    span input 20 35
    step 20 50)"),
            "0 [0,20) input=10 other=10 (before_forward=10)\n"
            "1 [20,50) input=15 other=15 (before_forward=15)\n");
}

TEST(Fold, ASpanThatReachesBeyondTheCloseIsClipped) {
  EXPECT_EQ(steps(R"(
    span input 0 10
    step 0 50
    span user:outer 30 70
    step 50 100
    span input 100 101
    step 100 110)"),
            "0 [0,50) input=10 other=40 (before_forward=40)\n"
            "1 [50,100) other=30 'outer'=20 (before_forward=30)\n"
            "2 [100,110) input=1 other=9 (before_forward=9)\n");
}

TEST(Fold, ASpanWrittenBeforeTheCloseThatReachesBeyondItCountsInBoth) {
  EXPECT_EQ(steps(R"(
    span validation 10 70
    step 0 50
    step 50 100)"),
            "0 [0,50) validation=40 other=10 (before_forward=10)\n"
            "1 [50,100) validation=20 other=30 (before_forward=30)\n");
  EXPECT_EQ(occurrences("span validation 10 70\n step 0 50\n"), "");
  EXPECT_EQ(occurrences("span validation 10 70\n step 0 50\n step 50 100\n step 100 110\n"),
            "validation 10 70\n");
}

TEST(Fold, TheInnermostSpanOwns) {
  EXPECT_EQ(steps(R"(
    span h2d 12 15
    span user:augment 11 20
    span user:outer 10 30
    step 0 40)"),
            "0 [0,40) h2d=3 other=20 'augment'=6 'outer'=11 (before_forward=20)\n");
}

TEST(Fold, ValidationOwnsAllWithinIt) {
  EXPECT_EQ(steps(R"(
    span input 10 20 not_training
    span forward 20 30 eval
    span user:metrics 30 35
    span validation 5 50
    step 0 60)"),
            "0 [0,60) validation=45 other=15 (before_forward=15)\n");
}

TEST(Fold, ACheckpointInAValidationIsTheCheckpoints) {
  EXPECT_EQ(steps(R"(
    span h2d 22 24
    span checkpoint 20 30
    span validation 10 50
    step 0 60)"),
            "0 [0,60) checkpoint=10 validation=30 other=20 (before_forward=20)\n");
}

TEST(Fold, GcAndCompileAreTakenOutOfWhateverTheyInterrupt) {
  EXPECT_EQ(
      steps(R"(
    span gc 12 14
    span validation 10 20
    span gc 32 33
    span backward 34 36
    span compile 31 38
    span forward 30 40
    span backward 40 50
    step 0 50)"),
      "0 [0,50) forward=3 backward=10 validation=8 compile=6 gc=3 other=20 (before_forward=20)\n");
}

TEST(Fold, SyncIsTakenOutOfBackward) {
  EXPECT_EQ(steps("span forward 10 20\n span sync 40 46\n span backward 20 50\n step 0 50\n"),
            "0 [0,50) forward=10 backward=24 sync=6 other=10 (before_forward=10)\n");
}

TEST(Fold, WhatWasComputedAgainIsAPartOfBackward) {
  EXPECT_EQ(steps(R"(
    span forward 10 20
    recomputed 36 50
    span backward 20 50
    recomputed 65 70
    span backward 60 70
    step 0 70
    recomputed 78 80
    span backward 70 80
    step 70 80)"),
            "0 [0,70) forward=10 backward=40 other=20 (recompute=19) (before_forward=10) "
            "(after_backward=10)\n"
            "1 [70,80) backward=10 (recompute=2)\n");
}

TEST(Fold, NoMoreIsComputedAgainThanBackwardHas) {
  EXPECT_EQ(steps("span gc 22 48\n recomputed 21 50\n span backward 20 50\n step 20 50\n"),
            "0 [20,50) backward=4 gc=26 (recompute=4)\n");
}

TEST(Fold, OfSpansOfOneEventTheLaterOneIsTheOuterOne) {
  Fold fold(0, {.name_of = [](uint8_t) { return std::string(); },
                .group_of = [](uint32_t) { return std::optional<ring::GroupValue>(); }});
  Folded out;
  // All of a backward was waiting: one event told both.
  fold.push({.index = 1, .t0_ns = 20, .t1_ns = 50, .phase = static_cast<uint8_t>(Phase::kSync)},
            out);
  fold.push({.index = 1, .t0_ns = 20, .t1_ns = 50, .phase = static_cast<uint8_t>(Phase::kBackward)},
            out);
  fold.push({.index = 2, .t0_ns = 20, .t1_ns = 60, .kind = RecordKind::kStep}, out);
  ASSERT_EQ(out.steps.size(), 1u);
  EXPECT_EQ(out.steps[0][Phase::kSync], 30);
}

TEST(Fold, AClosureInsideTheOptimizerKeepsItsForwardAndBackward) {
  EXPECT_EQ(steps(R"(
    span input 0 10
    mark zero_grad 21
    span forward 22 30
    span backward 35 60
    span optimizer 20 80
    step 0 80)"),
            "0 [0,80) input=10 forward=13 backward=25 optimizer=22 other=10 (loss=5) "
            "(before_forward=10)\n");
}

TEST(Fold, AClosureWithoutModulesRunsForwardFromZeroGrad) {
  EXPECT_EQ(steps(R"(
    span input 0 10
    mark zero_grad 25
    span backward 35 60
    mark zero_grad 65
    span backward 70 75
    span optimizer 20 80
    step 0 80)"),
            "0 [0,80) input=10 forward=15 backward=30 optimizer=15 other=10 (before_forward=10)\n");
}

TEST(Fold, LossEndsTheForwardOfItsMicroStepOnly) {
  EXPECT_EQ(
      steps(R"(
    span input 0 10
    span forward 10 20
    span backward 25 30
    span input 32 36
    span forward 37 40
    span backward 45 50
    span optimizer 52 60
    step 0 60)"),
      "0 [0,60) input=14 forward=23 backward=10 optimizer=8 other=5 (loss=10) (before_forward=1) "
      "(after_backward=4)\n");
}

TEST(Fold, AFetchOrAnOptimizerBetweenForwardAndBackwardEndsTheLoss) {
  EXPECT_EQ(steps("span forward 0 10\n span input 12 14\n span backward 20 30\n step 0 30\n"),
            "0 [0,30) input=2 forward=10 backward=10 other=8 (before_forward=6)\n");
  EXPECT_EQ(steps("span forward 0 10\n span optimizer 12 14\n span backward 20 30\n step 0 30\n"),
            "0 [0,30) forward=10 backward=10 optimizer=2 other=8 (after_optimizer=6)\n");
}

TEST(Fold, SpansInsideTheLossOwnTheirTime) {
  EXPECT_EQ(steps(R"(
    span forward 0 10
    span h2d 10 12
    span gc 13 14
    span user:criterion 15 25
    mark zero_grad 26
    span input 26 27 not_training
    span backward 30 40
    step 0 40)"),
            "0 [0,40) h2d=2 forward=16 backward=10 gc=1 other=1 'criterion'=10 (loss=6)\n");
}

TEST(Fold, WithoutModulesForwardRunsFromTheFetchToBackward) {
  EXPECT_EQ(
      steps(R"(
    span input 0 10
    span h2d 12 15
    span backward 40 60
    span optimizer 65 70
    step 0 70)"),
      "0 [0,70) input=10 h2d=3 forward=27 backward=20 optimizer=5 other=5 (after_backward=5)\n");
  EXPECT_EQ(
      steps(R"(
    span input 0 10
    mark zero_grad 14
    span backward 40 60
    span backward 64 66
    step 0 70)"),
      "0 [0,70) input=10 forward=30 backward=22 other=8 (before_forward=4) (after_backward=4)\n");
}

TEST(Fold, ANestedBackwardIsOneBackward) {
  EXPECT_EQ(steps(R"(
    span forward 0 10
    span forward 20 25
    span backward 25 30
    span backward 12 40
    span optimizer 45 50
    step 0 50)"),
            "0 [0,50) forward=17 backward=23 optimizer=5 other=5 (loss=2) (after_backward=5)\n");
}

TEST(Fold, ARaisedForwardHasNoLoss) {
  EXPECT_EQ(steps("span input 0 5\n span forward 5 10 raised\n step 0 20 failed\n"),
            "0 [0,20) input=5 forward=5 other=10 failed\n");
}

TEST(Fold, ASkippedOptimizerStepEndsTheTimeAfterBackward) {
  EXPECT_EQ(
      steps(
          "span forward 0 10\n span backward 10 20\n mark skipped 26\n step 0 30 counts=1,1,0,1\n"),
      "0 [0,30) forward=10 backward=10 other=10 (after_backward=6) (after_optimizer=4) "
      "counts=1,1,0,1\n");
}

TEST(Fold, ALoaderThatDoesNotTrainIsOther) {
  EXPECT_EQ(steps("span input 0 10 not_training\n step 0 20\n"),
            "0 [0,20) other=20 (before_forward=20)\n");
  EXPECT_EQ(steps("span input 2 8 not_training\n span input 0 10\n step 0 20\n"),
            "0 [0,20) input=10 other=10 (before_forward=10)\n");
}

TEST(Fold, BuiltInNamesAddToTheirPhaseAndStrangeNumbersToOther) {
  EXPECT_EQ(steps(R"(
    span input 0 10
    span other 10 12
    span 31 12 14
    span 200 14 16
    span user:optimizer 16 19
    step 0 20)"),
            "0 [0,20) input=10 optimizer=3 other=7 (before_forward=7)\n");
}

TEST(Fold, ABlockLeavesWhatIsBeforeItBetweenSteps) {
  EXPECT_EQ(
      steps(R"(
    span input 0 10
    mark step_begin 15
    span forward 16 20
    span backward 20 30
    step 0 40 explicit
    span checkpoint 42 45
    span input 47 50
    mark step_begin 55
    span forward 56 60
    step 40 70 explicit)"),
      "0 [0,40) input=10 forward=4 backward=10 other=16 (before_forward=1) (after_backward=10) "
      "(between_steps=5)\n"
      "1 [40,70) input=3 forward=4 checkpoint=3 other=20 (before_forward=1) (between_steps=9)\n");
}

TEST(Fold, AnEpochStartIsTheIterAndItsFirstFetch) {
  const std::string text = R"(
    span input 0 30 epoch_start
    span input 32 40 epoch_start
    span forward 40 50
    step 0 60
    span input 60 62
    step 60 70)";
  EXPECT_EQ(steps(text),
            "0 [0,60) input=38 forward=10 other=12 (epoch_start=38) (before_forward=2)\n"
            "1 [60,70) input=2 other=8 (before_forward=8)\n");
  EXPECT_EQ(occurrences(text), "epoch_start 2 40\n");
}

TEST(Fold, AnEpochStartMayReachOverAClose) {
  EXPECT_EQ(
      occurrences(
          "span input 0 30 epoch_start\n step 0 60\n span input 60 62 epoch_start\n step 60 70\n"),
      "epoch_start 30 62\n");
  EXPECT_EQ(
      occurrences("span input 0 30 epoch_start\n step 0 60\n span input 60 62\n step 60 70\n"),
      "epoch_start 60 90\n");
  EXPECT_EQ(occurrences(R"(
    span input 0 30 epoch_start not_training
    span input 30 40 epoch_start not_training
    span input 50 60 epoch_start
    span validation 0 70
    step 0 80)"),
            "validation 0 70\n");
}

TEST(Fold, OccurrencesAreOutermost) {
  EXPECT_EQ(occurrences(R"(
    span compile 12 15
    span compile 10 20
    span compile 30 40
    span checkpoint 52 58
    span checkpoint 51 60
    span profiler 70 71
    step 0 80)"),
            "compile 10 20\ncompile 30 40\ncheckpoint 51 60\nprofiler 70 71\n");
}

TEST(Fold, TheProcesssEndClosesAStepWithAnOptimizer) {
  const std::string text = R"(
    span input 0 10
    span forward 10 20
    span backward 20 30
    span optimizer 30 40
    step 0 50
    span input 50 60
    span forward 60 70
    span backward 70 80
    span optimizer 80 90
    span checkpoint 95 99
    span gc 200 210
    finish samples=8 counts=1,1,1,0 profiled)";
  EXPECT_EQ(steps(text),
            "0 [0,50) input=10 forward=10 backward=10 optimizer=10 other=10 (after_optimizer=10)\n"
            "1 [50,99) input=10 forward=10 backward=10 optimizer=10 checkpoint=4 other=5 "
            "(after_optimizer=5) profiled samples=8 "
            "counts=1,1,1,0\n");
  EXPECT_EQ(occurrences(text), "checkpoint 95 99\n");
}

TEST(Fold, ASkippedOptimizerClosesTheLastStepToo) {
  EXPECT_EQ(steps("span input 5 10\n span forward 10 20\n span backward 20 30\n mark skipped 31\n "
                  "finish counts=1,1,0,1\n"),
            "0 [5,31) input=5 forward=10 backward=10 other=1 (after_backward=1) counts=1,1,0,1\n");
}

TEST(Fold, ARestWithoutAnOptimizerIsNoStep) {
  const std::string text = R"(
    span input 0 1 exhausted
    span validation 2 50
    span checkpoint 51 60
    finish)";
  EXPECT_EQ(steps(text), "");
  EXPECT_EQ(occurrences(text), "validation 2 50\ncheckpoint 51 60\n");
  EXPECT_EQ(steps("span input 0 1\n span optimizer 2 5 raised\n finish\n"), "");
}

TEST(Fold, ARestOfTraceStepIsNoStep) {
  EXPECT_EQ(steps("span optimizer 2 5\n step 0 10 explicit\n span optimizer 12 15\n finish\n"),
            "0 [0,10) optimizer=3 other=7 (before_forward=2) (after_optimizer=5)\n");
  EXPECT_EQ(steps("explicit\n span optimizer 12 15\n finish\n"), "");
}

TEST(Fold, TheFirstStepBeginsAtItsMarkOrTheFirstFetch) {
  EXPECT_EQ(steps("span h2d 0 5\n span input 10 12\n span optimizer 15 20\n finish\n"),
            "0 [10,20) input=2 optimizer=5 other=3 (before_forward=3)\n");
  EXPECT_EQ(
      steps(
          "span h2d 0 5\n mark step_begin 8\n span input 10 12\n span optimizer 15 20\n finish\n"),
      "0 [8,20) input=2 optimizer=5 other=5 (before_forward=5)\n");
  EXPECT_EQ(steps("resume 9\n span input 10 12\n span optimizer 15 20\n finish\n"),
            "0 [9,20) input=2 optimizer=5 other=4 (before_forward=4)\n");
}

TEST(Fold, AStepThatTurnsOutToBeginLaterDoes) {
  EXPECT_EQ(steps("mark step_begin 0\n span input 0 5\n mark step_begin 10\n span input 10 12\n "
                  "span optimizer 15 20\n"
                  "finish\n"),
            "0 [10,20) input=2 optimizer=5 other=3 (before_forward=3)\n");
}

TEST(Fold, StepsThatAreRecognisedLateGetTheirSpans) {
  EXPECT_EQ(steps(R"(
    span forward 0 10
    span backward 10 20
    span forward 30 40
    span backward 40 50
    span forward 60 70
    step 0 30
    step 30 60
    span backward 70 80
    step 60 90)"),
            "0 [0,30) forward=10 backward=10 other=10 (after_backward=10)\n"
            "1 [30,60) forward=10 backward=10 other=10 (after_backward=10)\n"
            "2 [60,90) forward=10 backward=10 other=10 (after_backward=10)\n");
}

TEST(Fold, AStepOfWhichEventsAreMissingIsIncomplete) {
  EXPECT_EQ(steps("step 0 10\n step 10 20 incomplete\n step 20 30\n"),
            "0 [0,10) other=10 (before_forward=10)\n"
            "1 [10,20) other=10 (before_forward=10) incomplete\n"
            "2 [20,30) other=10 (before_forward=10)\n");
}

TEST(Fold, WhatIsNeededStartsAfterTheLastStepGivenOut) {
  Scenario s("span input 0 10\n step 0 20\n span input 20 25\n span forward 25 30\n");
  EXPECT_EQ(s.fold().needed_index(), 2u);
  Scenario ended("span input 0 10\n step 0 20\n span input 20 25\n finish\n");
  EXPECT_EQ(ended.fold().needed_index(), 3u);
  Scenario late("span input 0 10\n span input 20 25\n span forward 25 30\n step 0 20\n");
  EXPECT_EQ(late.fold().needed_index(), 1u);
}

TEST(Fold, AClosedStepMetAgainAfterARestartIsPassedOver) {
  EXPECT_EQ(steps(R"(
    resume 20
    span input 0 10
    span input 20 25
    span checkpoint 10 15
    step 0 20
    span forward 25 30
    step 20 40)"),
            "1 [20,40) input=5 forward=5 other=10\n");
  EXPECT_EQ(occurrences("resume 20\n span checkpoint 10 15\n span checkpoint 18 25\n step 20 40\n"),
            "checkpoint 18 25\n");
}

TEST(Fold, RecordsThatNoRecorderWritesDoNoHarm) {
  EXPECT_EQ(steps(R"(
    span input -5 10
    span forward 30 20
    span backward 0 9223372036854775807
    step 50 40
    step -9 100
    step 0 10
    step 5 20
    step 3 8
    step 20 30)"),
            "2 [0,10) other=10 (before_forward=10)\n"
            "3 [10,20) other=10 (before_forward=10)\n"
            "5 [20,30) other=10 (before_forward=10)\n");
}

}  // namespace
}  // namespace stepscope::agent
