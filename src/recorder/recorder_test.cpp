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

using wire::EventCode;

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

  // All events since the last call.
  std::vector<ring::EventValue> events() {
    std::vector<ring::EventValue> out(10'000);
    const auto drained = reader_->drain(next_, out);
    EXPECT_EQ(drained.lost, 0u);
    next_ = drained.next_index;
    out.resize(drained.count);
    return out;
  }
  std::vector<EventCode> codes() {
    std::vector<EventCode> list;
    for (const auto& event : events()) list.push_back(event.code);
    return list;
  }

  static constexpr uint64_t kCallsAStep = 9;
  void train_step(Recorder& r) {
    r.fetch_begin(1, true);
    r.fetch_end(32);
    r.zero_grad();
    r.forward_begin(true, true);
    r.forward_end(false);
    r.backward_begin(false);
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

TEST_F(RecorderTest, EachCallIsOneEventWithWhatItSays) {
  r_->iter_begin(7, true);
  r_->iter_end(false);
  r_->fetch_begin(7, false);
  r_->fetch_end(32);
  r_->fetch_failed(/*exhausted=*/true);
  r_->fetch_failed(/*exhausted=*/false);
  r_->forward_begin(true, true);
  r_->forward_begin(false, false);
  r_->forward_end(true);
  r_->backward_begin(false);
  r_->backward_end(true, true);
  r_->optimizer_begin(5);
  r_->optimizer_end(5);
  r_->optimizer_skipped();
  r_->zero_grad();
  r_->eval_called();
  r_->train_called();
  r_->sync_begin(9, true);
  r_->sync_end();
  r_->begin(40);
  r_->end(40, true);
  r_->cancel(1);
  r_->profiler_window(true);
  r_->profiler_window(false);
  r_->enter_step();
  r_->exit_step(true);
  r_->add_samples(64);
  struct Expected {
    EventCode code;
    int flags = 0;
    uint64_t a = 0;
    int phase = 0;
  };
  const std::vector<Expected> expected = {
      {EventCode::kIterBegin, wire::kGradOn, 7},
      {EventCode::kIterEnd},
      {EventCode::kFetchBegin, 0, 7},
      {EventCode::kFetchEnd, 0, 32},
      {EventCode::kFetchEnd, wire::kExhausted, wire::kUnmeasured},
      {EventCode::kFetchEnd, wire::kRaised, wire::kUnmeasured},
      {EventCode::kForwardBegin, wire::kGradOn | wire::kTrainingMode},
      {EventCode::kForwardBegin},
      {EventCode::kForwardEnd, wire::kRaised},
      {EventCode::kBackwardBegin},
      {EventCode::kBackwardEnd, wire::kRaised | wire::kReduced},
      {EventCode::kOptimizerBegin, 0, 5},
      {EventCode::kOptimizerEnd, 0, 5},
      {EventCode::kOptimizerSkipped},
      {EventCode::kZeroGrad},
      {EventCode::kEvalCalled},
      {EventCode::kTrainCalled},
      {EventCode::kSyncBegin, wire::kTogether, 9},
      {EventCode::kSyncEnd},
      {EventCode::kPhaseBegin, 0, 0, 40},
      {EventCode::kPhaseEnd, wire::kRaised, 0, 40},
      {EventCode::kPhaseCancel, 0, 0, 1},
      {EventCode::kProfilerWindow, wire::kOpen},
      {EventCode::kProfilerWindow},
      {EventCode::kStepEnter},
      {EventCode::kStepExit, wire::kRaised},
      {EventCode::kSamples, 0, 64}};
  const auto seen = events();
  ASSERT_EQ(seen.size(), expected.size());
  int64_t last_ns = 0;
  for (size_t i = 0; i < seen.size(); ++i) {
    EXPECT_EQ(seen[i].code, expected[i].code) << i;
    EXPECT_EQ(seen[i].flags, expected[i].flags) << i;
    EXPECT_EQ(seen[i].a, expected[i].a) << i;
    EXPECT_EQ(seen[i].phase, expected[i].phase) << i;
    EXPECT_EQ(seen[i].device, wire::kHostClock);
    EXPECT_GE(seen[i].t_ns, last_ns);
    last_ns = seen[i].t_ns;
  }
}

TEST_F(RecorderTest, ReadyIsTheTimeWhenLocalWorkWasDone) {
  r_->backward_begin(true);
  std::thread autograd([&] { r_->ready(); });
  autograd.join();
  EXPECT_TRUE(r_->backward_end(false, true));
  r_->ready();  // outside backward: nothing
  r_->backward_begin(true);
  EXPECT_FALSE(r_->backward_end(false, true));
  const auto all = events();
  ASSERT_EQ(all.size(), 4u);
  EXPECT_GE(all[1].a, static_cast<uint64_t>(all[0].t_ns));
  EXPECT_LE(all[1].a, static_cast<uint64_t>(all[1].t_ns));
  EXPECT_EQ(all[3].a, 0u);
}

TEST_F(RecorderTest, CloseSaysSoAndIsTheEnd) {
  train_step(*r_);
  EXPECT_EQ(reader_->identity().facts & wire::kFactClosed, 0u);
  r_->close();
  EXPECT_NE(reader_->identity().facts & wire::kFactClosed, 0u);
  EXPECT_FALSE(r_->recording());
  events();
  train_step(*r_);
  r_->close();
  EXPECT_TRUE(events().empty());
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
}

TEST_F(RecorderTest, GroupsAreNumberedOnceAndEachSyncSaysWhich) {
  EXPECT_EQ(reader_->group(1), std::nullopt);
  EXPECT_EQ(r_->group(0xabc, 4), 1u);
  EXPECT_EQ(r_->group(0xdef, 2), 2u);
  EXPECT_EQ(r_->group(0xabc, 4), 1u);
  EXPECT_EQ(reader_->group(1)->id, 0xabcu);
  EXPECT_EQ(reader_->group(1)->members, 4u);
  EXPECT_EQ(reader_->group(2)->members, 2u);
  EXPECT_EQ(reader_->group(0), std::nullopt);
  EXPECT_EQ(reader_->group(3), std::nullopt);
  r_->backward_begin(true, wire::pack_sync(2, 7));
  EXPECT_EQ(events().at(0).a, uint64_t{2} << 32 | 7);
  for (uint64_t id = 1; id < 100; ++id) r_->group(id, 2);
  EXPECT_EQ(r_->group(1234, 2), 0u);  // no room
  EXPECT_EQ(reader_->group(wire::kMaxGroups + 1), std::nullopt);
}

TEST_F(RecorderTest, PauseWritesNothingAndResumeSaysThatSomethingIsMissing) {
  train_step(*r_);
  events();
  r_->pause();
  EXPECT_FALSE(r_->recording());
  train_step(*r_);
  EXPECT_TRUE(events().empty());
  r_->resume();
  EXPECT_TRUE(r_->recording());
  r_->begin(1);
  r_->end(1);
  const auto all = events();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].code, EventCode::kResumed);
  EXPECT_EQ(all[0].a, wire::kAfterPause);
  EXPECT_EQ(all[1].code, EventCode::kPhaseBegin);
}

TEST_F(RecorderTest, ControlWordTurnsItOffAndOnAgain) {
  train_step(*r_);
  events();
  reader_->control(wire::Control::kOff);
  for (uint32_t i = 0; i < wire::kCostEvery; ++i) r_->begin(1);  // it is looked at now and then
  EXPECT_LE(events().size(), wire::kCostEvery);
  train_step(*r_);
  EXPECT_TRUE(events().empty());
  EXPECT_TRUE(r_->recording());
  reader_->control(wire::Control::kOn);
  r_->begin(1);
  EXPECT_EQ(codes(), (std::vector{EventCode::kResumed, EventCode::kPhaseBegin}));
}

TEST_F(RecorderTest, StepThreadIsTheFirstUntilAnotherRunsBackward) {
  std::thread prefetch([&] {
    r_->fetch_begin(1, true);
    r_->fetch_end(1);
  });
  prefetch.join();
  EXPECT_EQ(events().size(), 2u);
  r_->fetch_begin(1, true);  // not ours yet
  r_->fetch_end(1);
  EXPECT_TRUE(events().empty());
  r_->backward_begin(true);  // now it is
  r_->ready();
  EXPECT_TRUE(r_->backward_end(false, true));
  const auto all = events();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].code, EventCode::kResumed);
  EXPECT_EQ(all[0].a, wire::kOtherThread);
  EXPECT_GT(all[2].a, 0u);
  std::thread other([&] {
    r_->backward_begin(false);
    r_->backward_end(false, false);
    r_->begin(1);
    r_->end(1);
  });
  other.join();
  EXPECT_TRUE(events().empty());
}

TEST_F(RecorderTest, FullRingLosesEventsAndSaysHowMany) {
  for (int i = 0; i < 2000; ++i) train_step(*r_);
  const uint64_t capacity = wire::capacity_for(wire::kRankSegmentBytes);
  EXPECT_EQ(reader_->dropped(), 2000 * kCallsAStep - capacity);
  EXPECT_EQ(events().size(), capacity);
  reader_->release(next_);
  train_step(*r_);
  const auto after = events();
  ASSERT_EQ(after.size(), kCallsAStep);
  EXPECT_EQ(after[0].missing, 2000 * kCallsAStep - capacity);
  EXPECT_EQ(after[1].missing, 0u);
}

TEST_F(RecorderTest, OwnCostIsSampled) {
  for (int i = 0; i < 100; ++i) train_step(*r_);
  EXPECT_NEAR(static_cast<double>(reader_->cost_calls()), 100.0 * kCallsAStep / wire::kCostEvery,
              1.0);
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
  events();
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop.load()) {
      r_->ready();
      r_->set_fact(wire::kFactDdp);
      r_->name("theirs");
      r_->begin(1);
      r_->end(1);
      r_->backward_begin(false);
      r_->set_ranks(1, 1, 2, 2);
    }
  });
  uint64_t count = 0;
  for (int i = 0; i < 20; ++i) {
    r_->name("ours");
    for (int k = 0; k < 50; ++k) train_step(*r_);
    for (const auto& event : events()) {
      ASSERT_NE(event.phase, 1);
      ++count;
    }
    reader_->release(next_);
  }
  stop.store(true);
  other.join();
  EXPECT_EQ(count, kCallsAStep * 20 * 50);
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
    std::vector<ring::EventValue> events(10);
    EXPECT_EQ(reader->drain(0, events).count, 2u);
    const bool parents = id.pid == parent;
    EXPECT_EQ(reader->name(32), parents ? "parent's" : "own");
    EXPECT_EQ(reader->name(33), "phase-33");
    const uint32_t closed = wire::kFactTorchImported | wire::kFactClosed;
    EXPECT_EQ(id.facts, parents ? wire::kFactTorchImported | wire::kFactDdp : closed);
  }
}

}  // namespace stepscope::recorder
