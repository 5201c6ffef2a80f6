#include "recorder/recorder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "ring/reader.h"
#include "ring/test_folder.h"

namespace stepscope::recorder {

using wire::RecordKind;

class RecorderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.folder = folder_.path();
    options_.run_id = "test";
    r_.reset(new Recorder());
    const Status opened = r_->open(options_);
    ASSERT_TRUE(opened) << opened.error().message;
    auto reader = ring::Reader::open(folder_.only_file());
    ASSERT_TRUE(reader);
    reader_.emplace(std::move(*reader));
  }

  // All records since the last call.
  std::vector<ring::RecordValue> records() {
    std::vector<ring::RecordValue> out(10'000);
    const auto drained = reader_->drain(next_, out, false);
    EXPECT_EQ(drained.lost, 0u);
    next_ = drained.next_index;
    out.resize(drained.count);
    return out;
  }
  // "input forward backward optimizer" ... as they were written; [step], (mark), <sync>, ! for
  // raised.
  static std::string tell(const std::vector<ring::RecordValue>& records) {
    std::string text;
    for (const auto& r : records) {
      text += text.empty() ? "" : " ";
      if (r.kind == RecordKind::kStep)
        text += "[" + std::to_string(r.step) + "]";
      else if (r.kind == RecordKind::kMark)
        text += "(" + std::to_string(r.phase) + ")";
      else if (r.kind == RecordKind::kSync)
        text += "<sync " + std::to_string(r.a) + "#" + std::to_string(r.b) + ">";
      else if (r.phase >= kFirstUserPhase)
        text += "user" + std::to_string(r.phase - kFirstUserPhase);
      else
        text += std::string(kPhaseNames[r.phase]);
      if (r.kind == RecordKind::kSpan && (r.flags & wire::kSpanRaised)) text += "!";
    }
    return text;
  }
  std::string told() { return tell(records()); }

  void train_step(Recorder& r) {
    r.fetch_begin(1, true);
    r.fetch_end(FetchEnd::kBatch, 32);
    r.zero_grad();
    r.forward_begin(true, true);
    r.forward_end(false);
    r.backward_begin();
    r.backward_end(false, false);
    r.optimizer_begin(5);
    r.optimizer_end(5);
  }

  ring::TestFolder folder_;
  OpenOptions options_;
  std::unique_ptr<Recorder> r_;
  std::optional<ring::Reader> reader_;
  uint64_t next_ = 0;
};

TEST_F(RecorderTest, PlainStepsAreSpansAndStepRecords) {
  train_step(*r_);
  EXPECT_EQ(told(), "(4) input (3) forward backward optimizer");
  train_step(*r_);
  const auto second = records();
  EXPECT_EQ(tell(second), "[0] input (3) forward backward optimizer");
  EXPECT_EQ(second[0].a, 32u);
  const wire::StepCounts counts = wire::unpack_counts(second[0].b);
  EXPECT_EQ(counts.fetches, 1);
  EXPECT_EQ(counts.backwards, 1);
  EXPECT_EQ(counts.optimizer_steps, 1);
  EXPECT_EQ(second[0].flags, 0);
  EXPECT_EQ(second[1].step, 1u);
  EXPECT_EQ(second[1].a, 32u);
  EXPECT_EQ(second[0].t1_ns, second[1].t0_ns);  // the step ended at the fetch's entry
  EXPECT_EQ(r_->step(), 1u);
}

TEST_F(RecorderTest, EpochStartAndExhaustionAreFlagged) {
  r_->iter_begin(1, true);
  r_->iter_end(false);
  train_step(*r_);
  r_->fetch_begin(1, true);
  r_->fetch_end(FetchEnd::kExhausted, wire::kUnmeasured);
  std::vector<int> flags;
  for (const auto& r : records())
    if (r.kind == RecordKind::kSpan && r.phase == 0) flags.push_back(r.flags);
  EXPECT_EQ(flags,
            (std::vector<int>{wire::kSpanEpochStart, wire::kSpanEpochStart, wire::kSpanExhausted}));
}

TEST_F(RecorderTest, ExceptionsAreFlagged) {
  r_->fetch_begin(1, true);
  r_->fetch_end(FetchEnd::kBatch, 1);
  r_->forward_begin(true, true);
  r_->forward_end(true);
  r_->fetch_begin(1, true);
  r_->fetch_end(FetchEnd::kBatch, 1);
  r_->optimizer_begin(5);  // raises
  r_->fetch_begin(1, true);
  const auto all = records();
  EXPECT_EQ(tell(all), "(4) input forward! [0] input optimizer! [1]");
  EXPECT_EQ(all[3].flags, wire::kStepFailed);
  EXPECT_EQ(all[6].flags, wire::kStepFailed);
}

TEST_F(RecorderTest, ReadyTellsTheWaitInsideBackward) {
  r_->backward_begin();
  std::thread autograd([&] { r_->ready(); });
  autograd.join();
  EXPECT_TRUE(r_->backward_end(false, true));
  r_->backward_begin();
  EXPECT_FALSE(r_->backward_end(false, false));
  const auto all = records();
  EXPECT_EQ(tell(all), "(4) <sync 0#0> backward backward");
  EXPECT_LE(all[2].t0_ns, all[1].t0_ns);
  EXPECT_EQ(all[1].t1_ns, all[2].t1_ns);
  EXPECT_EQ(reader_->identity().facts & wire::kFactReadyNotMeasured, 0u);
  r_->backward_begin();
  EXPECT_FALSE(r_->backward_end(false, true));
  EXPECT_NE(reader_->identity().facts & wire::kFactReadyNotMeasured, 0u);
  r_->ready();  // outside backward: nothing
  EXPECT_EQ(told(), "backward");
}

TEST_F(RecorderTest, SyncPointsAreNumberedByGroup) {
  for (const uint64_t group : {7, 0, 7}) {
    r_->sync_begin(group);
    r_->sync_begin(group);  // a collective made of collectives
    r_->sync_end();
    r_->sync_end();
  }
  EXPECT_EQ(told(), "<sync 7#0> <sync 0#0> <sync 7#1>");
  for (uint64_t group = 100; group < 120; ++group) {
    r_->sync_begin(group);
    r_->sync_end();
  }
  EXPECT_EQ(records().back().b, wire::kUnmeasured);  // more groups than are numbered
}

TEST_F(RecorderTest, NowWordTellsTheInnermostPhaseAndTheStep) {
  EXPECT_EQ(reader_->now().phase, static_cast<uint8_t>(Phase::kOther));
  train_step(*r_);
  r_->fetch_begin(1, true);
  EXPECT_EQ(reader_->now().phase, static_cast<uint8_t>(Phase::kInput));
  EXPECT_EQ(reader_->now().step, 1u);
  EXPECT_EQ(reader_->now().since_ns, records().back().t1_ns);  // of step 0
  r_->begin(static_cast<uint8_t>(Phase::kGc));
  EXPECT_EQ(reader_->now().phase, static_cast<uint8_t>(Phase::kGc));
  r_->end(static_cast<uint8_t>(Phase::kGc));
  EXPECT_EQ(reader_->now().phase, static_cast<uint8_t>(Phase::kInput));
  r_->fetch_end(FetchEnd::kBatch, 1);
  r_->eval_called();
  EXPECT_EQ(reader_->now().phase, static_cast<uint8_t>(Phase::kValidation));
}

TEST_F(RecorderTest, ValidationIsASpan) {
  train_step(*r_);
  records();
  r_->eval_called();
  r_->fetch_begin(2, false);
  r_->fetch_end(FetchEnd::kBatch, 8);
  r_->forward_begin(false, false);
  r_->forward_end(false);
  const auto inside = records();
  EXPECT_EQ(tell(inside), "(5) input forward");
  EXPECT_EQ(inside[1].flags, wire::kSpanNotTraining);
  EXPECT_EQ(inside[2].flags, wire::kSpanEvalForward);
  r_->train_called();
  const auto after = records();
  EXPECT_EQ(tell(after), "validation");
  EXPECT_LE(after[0].t0_ns, inside[1].t0_ns);
  EXPECT_GE(after[0].t1_ns, inside[2].t1_ns);
}

TEST_F(RecorderTest, ClosePublishesTheValidationInProgressAndSaysSo) {
  train_step(*r_);
  r_->eval_called();
  r_->forward_begin(false, false);
  r_->forward_end(false);
  records();
  EXPECT_EQ(reader_->identity().facts & wire::kFactClosed, 0u);
  r_->close();
  EXPECT_EQ(told(), "validation");
  EXPECT_NE(reader_->identity().facts & wire::kFactClosed, 0u);
  EXPECT_FALSE(r_->recording());
  train_step(*r_);
  r_->close();
  EXPECT_EQ(told(), "");
}

TEST_F(RecorderTest, NamesAreNumberedOnceAndBuiltInOnesAreThePhases) {
  EXPECT_EQ(r_->name("tokenise"), 32);
  EXPECT_EQ(r_->name("augment"), 33);
  EXPECT_EQ(r_->name("tokenise"), 32);
  EXPECT_EQ(r_->name("token"), 34);
  EXPECT_EQ(r_->name("h2d"), static_cast<uint8_t>(Phase::kH2d));
  const std::string longer(200, 'x');
  EXPECT_EQ(r_->name(longer.c_str()), 35);
  EXPECT_EQ(r_->name((longer + "y").c_str()), 35);  // cut
  EXPECT_EQ(reader_->name(33), "augment");
  EXPECT_EQ(reader_->name(35), std::string(63, 'x'));
  for (int i = 0; i < 100; ++i) r_->name(("phase " + std::to_string(i)).c_str());
  EXPECT_EQ(r_->name("one too many"), static_cast<uint8_t>(Phase::kOther));
  r_->begin(32);
  r_->end(32);
  EXPECT_EQ(told(), "user0");
}

TEST_F(RecorderTest, CancelLeavesNoRecord) {
  r_->begin(1);
  r_->cancel(1);
  r_->cancel(1);
  r_->end(1);
  EXPECT_EQ(told(), "");
}

TEST_F(RecorderTest, SpansDeeperThanTheStackAreLostAndNothingElse) {
  for (int i = 0; i < 100; ++i) r_->begin(32);
  for (int i = 0; i < 100; ++i) r_->end(32);
  EXPECT_EQ(records().size(), PhaseStack::kDepth);
  train_step(*r_);
  EXPECT_EQ(told(), "(4) input (3) forward backward optimizer");
}

TEST_F(RecorderTest, FlagsOfSteps) {
  const auto flags = [&] {
    for (const auto& r : records())
      if (r.kind == RecordKind::kStep) return static_cast<int>(r.flags);
    return -1;
  };
  train_step(*r_);
  r_->begin(static_cast<uint8_t>(Phase::kCompile));
  r_->end(static_cast<uint8_t>(Phase::kCompile));
  train_step(*r_);
  EXPECT_EQ(flags(), wire::kStepCompiled);
  r_->profiler_window(true);
  train_step(*r_);
  EXPECT_EQ(flags(), wire::kStepProfiled);
  train_step(*r_);
  r_->profiler_window(false);
  train_step(*r_);
  EXPECT_EQ(flags(), wire::kStepProfiled);
  train_step(*r_);
  EXPECT_EQ(flags(), 0);
}

TEST_F(RecorderTest, PauseDropsWhatWasOpenAndFlagsTheStep) {
  train_step(*r_);
  r_->fetch_begin(1, true);
  r_->pause();
  EXPECT_FALSE(r_->recording());
  r_->fetch_end(FetchEnd::kBatch, 1);
  train_step(*r_);
  records();
  r_->resume();
  r_->fetch_end(FetchEnd::kBatch, 1);  // its begin was before
  EXPECT_EQ(told(), "");
  train_step(*r_);
  train_step(*r_);
  const auto all = records();
  EXPECT_EQ(tell(all),
            "input (3) forward backward optimizer [1] input (3) forward backward optimizer");
  EXPECT_EQ(all[5].flags, wire::kStepPaused);
}

TEST_F(RecorderTest, PauseInsideABlockDoesNotLoseItsExit) {
  r_->enter_step();
  r_->pause();
  r_->resume();
  r_->exit_step(false);
  r_->exit_step(false);
  r_->enter_step();
  r_->exit_step(false);
  const auto all = records();
  EXPECT_EQ(tell(all), "(4) [0] (4) [1]");
  EXPECT_EQ(all[1].flags, wire::kStepPaused | wire::kStepExplicit);
  EXPECT_EQ(all[3].flags, wire::kStepExplicit);
}

TEST_F(RecorderTest, ControlWordTurnsItOffAndOnAgain) {
  train_step(*r_);
  reader_->control(wire::Control::kOff);
  train_step(*r_);  // the word is read when step 0 closes
  EXPECT_EQ(told(), "(4) input (3) forward backward optimizer [0]");
  train_step(*r_);
  EXPECT_EQ(told(), "");
  reader_->control(wire::Control::kOn);
  train_step(*r_);
  train_step(*r_);
  const auto all = records();
  EXPECT_EQ(tell(all).substr(0, 9), "input (3)");
  EXPECT_EQ(r_->step(), 4u);
}

TEST_F(RecorderTest, StepThreadIsTheFirstUntilAnotherRunsBackward) {
  std::thread prefetch([&] {
    r_->fetch_begin(1, true);
    r_->fetch_end(FetchEnd::kBatch, 1);
  });
  prefetch.join();
  EXPECT_EQ(told(), "(4) input");
  r_->fetch_begin(1, true);  // not ours yet
  r_->fetch_end(FetchEnd::kBatch, 1);
  EXPECT_EQ(told(), "");
  r_->backward_begin();  // now it is
  r_->backward_end(false, false);
  EXPECT_EQ(told(), "backward");
  std::thread other([&] {
    r_->backward_begin();
    r_->backward_end(false, false);
    r_->begin(1);
    r_->end(1);
  });
  other.join();
  EXPECT_EQ(told(), "");
}

TEST_F(RecorderTest, FullRingLosesRecordsAndNoTime) {
  for (int i = 0; i < 2000; ++i) train_step(*r_);
  EXPECT_EQ(reader_->head(), wire::capacity_for(wire::kRankSegmentBytes));
  EXPECT_GT(reader_->dropped(), 0u);
  EXPECT_EQ(r_->step(), 1999u);
}

TEST_F(RecorderTest, OwnCostIsSampled) {
  for (int i = 0; i < 100; ++i) train_step(*r_);
  EXPECT_EQ(reader_->cost_calls(), (100 * 9 + wire::kCostEvery - 1) / wire::kCostEvery);
  EXPECT_GT(reader_->cost_ns(), 0u);
}

TEST_F(RecorderTest, RanksMayComeLate) {
  EXPECT_EQ(reader_->identity().rank, -1);
  r_->set_ranks(5, 1, 8, 4);
  const auto id = reader_->identity();
  EXPECT_EQ(id.rank, 5);
  EXPECT_EQ(id.local_rank, 1);
  EXPECT_EQ(id.world_size, 8);
  EXPECT_EQ(id.local_world_size, 4);
}

TEST_F(RecorderTest, OtherThreadsMayCallWhatTheyLike) {
  train_step(*r_);  // binds the step thread
  records();
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop.load()) {
      r_->ready();
      r_->set_fact(wire::kFactDdp);
      r_->name("theirs");
      r_->begin(1);
      r_->end(1);
      r_->backward_begin();
      r_->step();
      r_->set_ranks(1, 1, 2, 2);
    }
  });
  uint64_t spans = 0;
  for (int i = 0; i < 20; ++i) {
    r_->name("ours");
    for (int k = 0; k < 50; ++k) train_step(*r_);
    for (const auto& r : records()) {
      ASSERT_NE(r.phase, 1);
      spans += r.kind == RecordKind::kSpan;
    }
    reader_->release(next_);
  }
  stop.store(true);
  other.join();
  EXPECT_EQ(spans, 4u * 20 * 50);
}

TEST_F(RecorderTest, OpensOnce) { EXPECT_FALSE(r_->open(options_)); }

// The real instance, in a child of its own: forks again and looks at who writes.
int fork_checks(const OpenOptions& options) {
  Recorder& r = Recorder::instance();
  if (!r.open(options)) return 1;
  r.set_fact(wire::kFactTorchImported | wire::kFactDdp);
  r.name("parent's");
  r.begin(32);
  const pid_t child = fork();
  if (child == 0) {
    if (r.recording() || r.is_open()) _exit(2);
    r.begin(1);
    r.end(1);
    r.end(32);
    r.set_fact(wire::kFactFsdp);
    r.name("child's");
    r.close();
    if (!r.open(options)) _exit(3);
    if (r.name("own") != 32) _exit(4);
    r.begin(32);
    r.end(32);
    r.close();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  r.end(32);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 5;
}

TEST(RecorderFork, ChildIsSilentUntilItMakesASegmentOfItsOwn) {
  ring::TestFolder folder;
  OpenOptions options;
  options.folder = folder.path();
  const pid_t parent = fork();
  if (parent == 0) _exit(fork_checks(options));
  int status = 0;
  ASSERT_EQ(waitpid(parent, &status, 0), parent);
  ASSERT_TRUE(WIFEXITED(status));
  ASSERT_EQ(WEXITSTATUS(status), 0);
  ASSERT_EQ(folder.names().size(), 2u);
  for (const std::string& name : folder.names()) {
    auto reader = ring::Reader::open(folder.path() + "/" + name);
    ASSERT_TRUE(reader);
    const auto id = reader->identity();
    EXPECT_EQ(reader->head(), 1u);
    const bool parents = id.pid == parent;
    EXPECT_EQ(reader->name(32), parents ? "parent's" : "own");
    EXPECT_EQ(reader->name(33), "phase-33");
    const uint32_t closed = wire::kFactTorchImported | wire::kFactClosed;
    EXPECT_EQ(id.facts, parents ? wire::kFactTorchImported | wire::kFactDdp : closed);
  }
}

}  // namespace stepscope::recorder
