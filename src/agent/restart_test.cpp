// Agents that are killed and started again at every possible moment find the same steps as one that
// never was.
#include <gtest/gtest.h>

#include "agent/event_script.h"
#include "agent/segments_fixture.h"

namespace stepscope::agent {
namespace {

const std::string kTrain = "get L; zero; span h2d; fwd; bwd ready reduced k3; sync k4; opt A;";

const std::string kMixed =
    // a peek, then epochs with a validation, accumulation, two optimizers, a teacher
    "it L; get L; fwd off; it L;" + repeat(3, kTrain) + "eval; it V off;" +
    repeat(3, "get V off; fwd off") + "end V off; train;" + repeat(2, kTrain) +
    "get L; fwd; bwd; get L; fwd; begin 33; bwd; end_phase 33; opt A; end L;" +
    // validation without eval(), a checkpoint with a wait inside, garbage collected
    "it V; get V; fwd off; get V; fwd off; end V; begin checkpoint; sync k5 alone; end_phase "
    "checkpoint;" +
    "it L;" + repeat(2, "get L; fwd; span gc; fwd; bwd; opt D; fwd; bwd; opt G") +
    repeat(2, "get L; fwd off; fwd; bwd; opt A") +
    // nested loaders and optimizers, exceptions, a closure that runs twice
    "get( L; get I; get I; )get L; fwd; bwd; opt( A; opt( A; )opt A; )opt A;" +
    "get L; fwd raise; get L; fwd; bwd; opt( A; get L; fwd; bwd; skip;" +
    repeat(3, "get L; opt( A; zero; fwd; bwd; zero; fwd; bwd; )opt A") +
    "resumed; get L; fwd; bwd; span compile; opt A; end L;" +
    // one batch again and again: steps are recognised late
    "it L; get L; fwd; bwd; opt A; get L;" + repeat(20, "zero; fwd; bwd; span h2d; opt A") +
    "eval; get V off; fwd off; get V off; fwd off";

const std::string kFunctional =
    repeat(9, "begin 40; zero; span h2d; wait 300; bwd; end_phase 40; opt A") +
    repeat(4, "opt( A; zero; span 41; wait 200; bwd; zero; wait 200; bwd; )opt A");

const std::string kUnseenOptimizer = repeat(20, "get L; span h2d; zero; fwd; bwd; span 35");

const std::string kExplicit =
    "profile on;" + repeat(4, "get L; step(; span h2d; fwd; bwd; opt A; )step; span checkpoint") +
    "profile off; eval; fwd off; fwd off; train;" +
    repeat(3, "step(; get L; step(; fwd; bwd; )step; samples 3; opt A; )step raise");

class RestartTest : public SegmentsTest {
 protected:
  // A process that has written `count` events of the script.
  struct Traced {
    FakeProcess process;
    EventScript script;
    size_t written = 0;

    Traced(const std::string& folder, const std::string& text)
        : process(folder, 0, wire::kWorkerSegmentBytes), script(text) {
      process.identity().mono_ns = 1;
    }
    void write_until(size_t count) {
      for (; written < count; ++written) ASSERT_TRUE(process.write(script.events[written]));
    }
    size_t events() const { return script.events.size(); }
  };

  void start_over() {
    remove_tree(folder_);
    ASSERT_EQ(mkdir(folder_.c_str(), 0700), 0);
    stored_.clear();
    batch_.clear();
    run_.ranks.clear();
  }
  void end(Segments& segments) {
    segments.finish(run_, 5, batch_);
    commit(segments);
  }

  void read_whole(const std::string& text) {
    start_over();
    Traced traced(folder_, text);
    traced.write_until(traced.events());
    Segments segments(folder_);
    end(segments);
    whole_ = run_.ranks.at(0);
    start_over();
  }
  void expect_same() {
    ASSERT_EQ(run_.ranks.size(), 1u);
    const RankHistory& rank = run_.ranks[0];
    ASSERT_EQ(rank.raw.size(), whole_.raw.size());
    for (size_t i = 0; i < rank.raw.size(); ++i) {
      SCOPED_TRACE("step " + std::to_string(i));
      const StepSample &a = rank.raw[i], &b = whole_.raw[i];
      EXPECT_EQ(a.step, b.step);
      EXPECT_EQ(a.begin_ns, b.begin_ns);
      EXPECT_EQ(a.end_ns, b.end_ns);
      EXPECT_EQ(a.phase_ns, b.phase_ns);
      EXPECT_EQ(a.user_phase_ns, b.user_phase_ns);
      EXPECT_EQ(a.samples, b.samples);
      EXPECT_EQ(a.syncs, b.syncs);
      EXPECT_EQ(std::tie(a.fetches, a.backwards, a.optimizer_steps, a.skipped_steps),
                std::tie(b.fetches, b.backwards, b.optimizer_steps, b.skipped_steps));
      EXPECT_EQ(std::tie(a.failed, a.profiled, a.compiled, a.paused, a.incomplete),
                std::tie(b.failed, b.profiled, b.compiled, b.paused, b.incomplete));
    }
    EXPECT_EQ(rank.facts, whole_.facts);
    for (size_t kind = 0; kind < kOccurrenceKinds; ++kind) {
      const auto &found = rank.occurrences[kind].recent, &all = whole_.occurrences[kind].recent;
      ASSERT_EQ(found.size(), all.size());
      if (kind == static_cast<size_t>(OccurrenceKind::kEpochStart))
        continue;  // its halves may be told apart
      for (size_t i = 0; i < found.size(); ++i)
        EXPECT_EQ(std::tie(found[i].step, found[i].begin_ns, found[i].duration_ns),
                  std::tie(all[i].step, all[i].begin_ns, all[i].duration_ns));
    }
  }

  RankHistory whole_;
};

TEST_F(RestartTest, TheScriptsAreWhatTheyAreMeantToBe) {
  read_whole(kMixed);
  EXPECT_EQ(whole_.steps + whole_.failed_steps, 39);
  EXPECT_EQ(whole_.failed_steps, 2);
  EXPECT_EQ(whole_.incomplete_steps, 0);
  read_whole(kFunctional);
  EXPECT_EQ(whole_.steps, 13);
  read_whole(kUnseenOptimizer);
  EXPECT_EQ(whole_.steps, 19);
  read_whole(kExplicit);
  EXPECT_EQ(whole_.steps + whole_.failed_steps, 7);
}

TEST_F(RestartTest, AtEveryEventOnceFindsTheSameSteps) {
  for (const std::string& text : {kMixed, kFunctional, kUnseenOptimizer, kExplicit}) {
    read_whole(text);
    const size_t events = EventScript(text).events.size();
    for (size_t cut = 0; cut <= events; ++cut) {
      SCOPED_TRACE("restart at event " + std::to_string(cut));
      start_over();
      Traced traced(folder_, text);
      traced.write_until(cut);
      {
        Segments first(folder_);
        poll(first);
        commit(first);
      }
      traced.write_until(traced.events());
      Segments second(folder_, stored_);
      end(second);
      expect_same();
      if (HasFailure()) return;
    }
  }
}

TEST_F(RestartTest, AtEveryEventAgainAndAgainFindsTheSameSteps) {
  for (const std::string& text : {kMixed, kFunctional, kUnseenOptimizer, kExplicit}) {
    for (const size_t stride : {1, 2, 5}) {
      read_whole(text);
      Traced traced(folder_, text);
      for (size_t count = 0; count <= traced.events(); count += stride) {
        traced.write_until(count);
        Segments segments(folder_, stored_);
        poll(segments);
        commit(segments);
      }
      traced.write_until(traced.events());
      Segments last(folder_, stored_);
      end(last);
      expect_same();
      if (HasFailure()) return;
    }
  }
}

TEST_F(RestartTest, WhatWasReadAndNotStoredIsReadAgain) {
  read_whole(kMixed);
  Traced traced(folder_, kMixed);
  for (size_t count = 0; count <= traced.events(); count += 3) {
    traced.write_until(count);
    Segments segments(folder_, stored_);
    poll(segments);
    commit(segments);
    const RunHistory stored = run_;
    traced.write_until(std::min(count + 3, traced.events()));
    poll(segments);
    run_ = stored;  // killed here
    batch_.clear();
  }
  traced.write_until(traced.events());
  Segments last(folder_, stored_);
  end(last);
  expect_same();
}

TEST_F(RestartTest, AfterTheEndThereIsNothingMore) {
  read_whole(kMixed);
  Traced traced(folder_, kMixed);
  traced.write_until(traced.events());
  traced.process.fact(kFactClosed);
  for (int i = 0; i < 3; ++i) {
    Segments segments(folder_, stored_);
    end(segments);
  }
  whole_.facts |= kFactClosed;
  expect_same();
}

// Without the state the step in progress is incomplete, and all that follow are as they were.
TEST_F(RestartTest, WithADamagedStateNoFollowingStepIsLost) {
  const std::string text = repeat(9, kTrain);
  read_whole(text);
  const size_t events = EventScript(text).events.size();
  const auto damage = [](std::string& state, int how) {
    if (how == 0) state.clear();
    if (how == 1) state.resize(state.size() / 2);
    if (how == 2) state[state.size() / 2] ^= 4;
    if (how == 3) state[0] ^= 1;
  };
  for (size_t cut = 20; cut < events; cut += 7) {
    for (int how = 0; how < 4; ++how) {
      SCOPED_TRACE("restart at event " + std::to_string(cut));
      start_over();
      Traced traced(folder_, text);
      traced.write_until(cut);
      {
        Segments first(folder_);
        poll(first);
        commit(first);
      }
      ASSERT_EQ(stored_.size(), 1u);
      damage(stored_[0].state, how);
      const size_t stored_steps = run_.ranks[0].raw.size();
      traced.write_until(events);
      Segments second(folder_, stored_);
      end(second);
      const auto& raw = run_.ranks[0].raw;
      ASSERT_EQ(raw.size(), whole_.raw.size());
      for (size_t i = 0; i < raw.size(); ++i) {
        EXPECT_EQ(raw[i].step, whole_.raw[i].step);
        EXPECT_EQ(raw[i].end_ns, whole_.raw[i].end_ns);
        EXPECT_EQ(raw[i].incomplete, i == stored_steps);
        if (i != stored_steps) {
          EXPECT_EQ(raw[i].phase_ns, whole_.raw[i].phase_ns);
        }
      }
      EXPECT_EQ(run_.ranks[0].facts, whole_.facts);
    }
  }
}

}  // namespace
}  // namespace stepscope::agent
