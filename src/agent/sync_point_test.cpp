// Sync points: from events through timeline and fold into the step that they end in.
#include <gtest/gtest.h>

#include "agent/event_script.h"
#include "agent/fold.h"
#include "agent/timeline.h"

namespace stepscope::agent {
namespace {

std::vector<StepSample> steps_of(const std::string& text) {
  Timeline timeline;
  Fold fold(0, {.name_of = [](uint8_t) { return std::string(); },
                .group_of = [](uint32_t number) -> std::optional<ring::GroupValue> {
                  if (number != 1) return std::nullopt;
                  return ring::GroupValue{.id = 77, .members = 4};
                }});
  std::vector<Record> records;
  Folded out;
  for (const ring::EventValue& event : EventScript(text).events) {
    records.clear();
    timeline.push(event, records);
    for (const Record& record : records) fold.push(record, out);
  }
  fold.finish(timeline.in_progress(), out);
  return out.steps;
}

TEST(SyncPoint, ReducingBackwardIsOneFromReadyToItsEnd) {
  const auto steps =
      steps_of("it L; get L; fwd; bwd ready reduced k5; opt A; get L; fwd; bwd; opt A");
  ASSERT_EQ(steps.size(), 2u);
  ASSERT_EQ(steps[0].syncs.size(), 1u);
  const SyncPoint& sync = steps[0].syncs[0];
  EXPECT_EQ(sync.group, 77u);
  EXPECT_EQ(sync.members, 4u);
  EXPECT_EQ(sync.index, 5u);
  EXPECT_TRUE(sync.together);
  EXPECT_EQ(sync.wait_ns(), 4);  // the script's ready is 1 ns after backward's begin, its end 5 ns
  EXPECT_EQ(steps[0][Phase::kSync], sync.wait_ns());
  EXPECT_TRUE(steps[1].syncs.empty());  // nothing was reduced
}

TEST(SyncPoint, ReadyNotMeasuredIsNone) {
  const auto steps = steps_of("it L; get L; fwd; bwd reduced k5; opt A; get L; fwd; bwd; opt A");
  EXPECT_TRUE(steps.at(0).syncs.empty());
}

TEST(SyncPoint, CollectivesKeepTheirOrderAndTellWhetherAllLeaveTogether) {
  const auto steps = steps_of(
      "it L; get L; sync k1; fwd; sync( k2; sync k3; )sync; sync alone; bwd; opt A; get L; fwd; "
      "bwd;"
      "opt A");
  ASSERT_EQ(steps.at(0).syncs.size(), 3u);
  const auto& syncs = steps[0].syncs;
  EXPECT_EQ(syncs[0].index, 1u);
  EXPECT_EQ(syncs[1].index, 2u);  // the outer one: one wait
  EXPECT_FALSE(syncs[2].together);
  EXPECT_EQ(syncs[2].group, 0u);
  EXPECT_EQ(syncs[2].members, 0u);
  for (size_t i = 1; i < syncs.size(); ++i) EXPECT_LE(syncs[i - 1].leave_ns, syncs[i].ready_ns);
}

TEST(SyncPoint, BelongsToTheStepInWhichItEnds) {
  // The second step begins at the fetch; the collective after it is the second's.
  const auto steps = steps_of(
      "it L; get L; fwd; bwd; opt A; sync k1; get L; sync k2; fwd; bwd; opt A; sync k3; end L");
  ASSERT_EQ(steps.size(), 2u);
  ASSERT_EQ(steps[0].syncs.size(), 1u);
  EXPECT_EQ(steps[0].syncs[0].index, 1u);
  ASSERT_EQ(steps[1].syncs.size(), 2u);
  EXPECT_EQ(steps[1].syncs[1].index, 3u);
}

TEST(SyncPoint, TooManyInAStepAreNotKeptInPart) {
  const int most = static_cast<int>(StepSample::kMaxSyncs);
  const std::string close = "bwd; opt A; get L; fwd; bwd; opt A; get L";
  const auto full = steps_of("it L; get L; fwd;" + repeat(most, "sync k1") + close);
  EXPECT_EQ(full.at(0).syncs.size(), StepSample::kMaxSyncs);
  const auto beyond = steps_of("it L; get L; fwd;" + repeat(most + 1, "sync k1") + close);
  EXPECT_TRUE(beyond.at(0).syncs.empty());
  EXPECT_TRUE(beyond.at(1).syncs.empty());
  EXPECT_GT(beyond.at(0)[Phase::kSync], 0);
}

}  // namespace
}  // namespace stepscope::agent
