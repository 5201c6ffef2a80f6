// From times of fetches to the figures of a run.
#include "tuner/loop.h"

#include <gtest/gtest.h>

namespace stepscope::tuner {
namespace {

constexpr int64_t kMs = 1'000'000;

TEST(Loop, WaitsStepsAndEpochStartsApart) {
  // Without workers: 3 steps of warm-up. Steps of 10 ms that wait 4; epochs of 5 begin with 24.
  std::vector<Fetch> fetches;
  int64_t now = 0;
  for (int i = 0; i < 15; ++i) {
    const bool start = i % 5 == 0;
    fetches.push_back({now, now + (start ? 24 : 4) * kMs, start});
    now += (start ? 30 : 10) * kMs;
  }
  const LoopRun run = run_of(fetches, now, {}, 5);
  EXPECT_EQ(run.step_ms, std::vector<double>(10, 10.0));  // 15 - 3 of warm-up - 2 starts beyond it
  EXPECT_EQ(run.wait_ms, std::vector<double>(10, 4.0));
  EXPECT_DOUBLE_EQ(run.epoch_start_ms, 20);
  EXPECT_DOUBLE_EQ(run.steps_per_epoch, 5);
}

TEST(Loop, TheOnlyEpochStartCountsWhereWorkersComeAgain) {
  const std::vector<double> once{50};
  LoopRun run{.step_ms = {10}, .wait_ms = {2}};
  add_epoch_starts(run, {.num_workers = 2, .prefetch_factor = 2}, once);
  EXPECT_DOUBLE_EQ(run.epoch_start_ms, 48);
  LoopRun kept{.step_ms = {10}, .wait_ms = {2}};
  add_epoch_starts(kept, {.num_workers = 2, .prefetch_factor = 2, .persistent_workers = true},
                   once);
  EXPECT_DOUBLE_EQ(kept.epoch_start_ms, 0);
}

TEST(Loop, NothingFetchedIsNoFigure) {
  EXPECT_TRUE(run_of({}, 0, {}, 0).step_ms.empty());
  EXPECT_TRUE(run_of({{0, 1, true}}, 2, {}, 0).step_ms.empty());
}

}  // namespace
}  // namespace stepscope::tuner
