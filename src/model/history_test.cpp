#include "model/history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace stepscope {
namespace {

// Step n lies at [n * 1000, n * 1000 + 1000) and has its number in its forward time.
StepSample step(int64_t n) {
  StepSample s;
  s.step = n;
  s.begin_ns = n * 1000;
  s.end_ns = s.begin_ns + 1000;
  s[Phase::kForward] = n % 700;
  s[Phase::kOther] = 1000 - n % 700;
  return s;
}

Settings no_warmup() {
  Settings settings;
  settings.warmup_steps = 0;
  return settings;
}

// The numbers of steps that the blocks cover, each as often as it is covered.
using Finest = RankHistory::Finest;
std::vector<int64_t> covered(const RankHistory& r, Finest finest = Finest::kStep) {
  std::vector<int64_t> steps;
  for (const StepBlock& b : r.steady_blocks(finest)) {
    EXPECT_EQ(b.count, b.last_step - b.first_step + 1);
    for (int64_t n = b.first_step; n <= b.last_step; ++n) steps.push_back(n);
  }
  return steps;
}

std::vector<int64_t> numbers(int64_t first, int64_t end) {
  std::vector<int64_t> list;
  for (; first < end; ++first) list.push_back(first);
  return list;
}

TEST(History, TheFirstStepsAreWarmup) {
  RankHistory r;
  for (int64_t n = 0; n < 25; ++n) r.add(step(n), Settings{});
  EXPECT_EQ(r.steps, 25);
  EXPECT_EQ(r.warmup_steps, 10);
  EXPECT_EQ(r.warmup_total_ns, 10'000);
  EXPECT_EQ(r.first_begin_ns, 0);
  EXPECT_EQ(r.last_end_ns, 25'000);
  EXPECT_EQ(covered(r), numbers(10, 25));
}

TEST(History, AnEarlyCompileIsWarmupAndALateOneIsNot) {
  RankHistory r;
  for (int64_t n = 0; n < 150; ++n) {
    StepSample s = step(n);
    s.compiled = n == 3 || n == 14 || n == 120;
    r.add(s, Settings{});
  }
  EXPECT_EQ(r.warmup_steps, 11);
  std::vector<int64_t> expected = numbers(10, 14);
  for (int64_t n : numbers(15, 150)) expected.push_back(n);
  std::vector<int64_t> raw_steady;
  for (const StepSample& s : r.raw)
    if (!s.warmup) raw_steady.push_back(s.step);
  EXPECT_EQ(raw_steady, expected);
}

TEST(History, AnotherAttemptWarmsUpAgain) {
  RankHistory r;
  for (int64_t n = 0; n < 20; ++n) r.add(step(n), Settings{});
  for (int64_t n = 0; n < 20; ++n) {
    StepSample s = step(n + 20);
    s.step = n;
    r.add(s, Settings{});
  }
  EXPECT_EQ(r.steps, 40);
  EXPECT_EQ(r.warmup_steps, 20);
}

TEST(History, WhatIsNotSteadyIsCountedAndNotAveraged) {
  RankHistory r;
  StepSample failed = step(0), profiled = step(1), incomplete = step(2), paused = step(3),
             good = step(4);
  failed.failed = true;
  failed.samples = 8;
  profiled.profiled = true;
  incomplete.incomplete = true;
  paused.paused = true;
  good.samples = 32;
  good.fetches = 2;
  good.backwards = 2;
  good.optimizer_steps = 1;
  for (const StepSample& s : {failed, profiled, incomplete, paused, good}) r.add(s, no_warmup());
  EXPECT_EQ(r.steps, 4);
  EXPECT_EQ(r.failed_steps, 1);
  EXPECT_EQ(r.profiled_steps, 1);
  EXPECT_EQ(r.incomplete_steps, 1);
  EXPECT_EQ(r.steady_samples, 32);
  EXPECT_EQ(r.steady_samples_ns, 1000);
  EXPECT_EQ(r.steady_fetches, 2);
  EXPECT_EQ(r.steady_backwards, 2);
  EXPECT_EQ(r.steady_optimizer_steps, 1);
  EXPECT_EQ(covered(r), numbers(4, 5));
  EXPECT_EQ(r.raw.size(), 5u);
}

TEST(History, TenStepsMakeARollupAndTenOfTheseTheNext) {
  RankHistory r;
  std::vector<std::pair<int, StepBlock>> made;
  for (int64_t n = 0; n < 100; ++n)
    for (auto& rollup : r.add(step(n), no_warmup())) made.push_back(rollup);
  ASSERT_EQ(made.size(), 11u);
  EXPECT_EQ(made[0].first, 0);
  EXPECT_EQ(made[0].second.first_step, 0);
  EXPECT_EQ(made[0].second.last_step, 9);
  EXPECT_EQ(made[0].second.count, 10);
  const size_t forward = static_cast<size_t>(Phase::kForward);
  EXPECT_DOUBLE_EQ(made[0].second.mean_ns[forward], 4.5);
  EXPECT_EQ(made[0].second.min_ns[forward], 0);
  EXPECT_EQ(made[0].second.median_ns[forward], 4);
  EXPECT_EQ(made[0].second.max_ns[forward], 9);
  EXPECT_EQ(made[0].second.mean_ns[kPhaseCount], 1000);
  EXPECT_EQ(made[10].first, 1);
  EXPECT_EQ(made[10].second.count, 100);
  EXPECT_EQ(made[10].second.begin_ns, 0);
  EXPECT_EQ(made[10].second.end_ns, 100'000);
  EXPECT_DOUBLE_EQ(made[10].second.mean_ns[forward], 49.5);
  EXPECT_EQ(made[10].second.max_ns[forward], 99);
}

TEST(History, RollupsKeepUserPhasesAndParts) {
  RankHistory r;
  for (int64_t n = 0; n < 10; ++n) {
    StepSample s = step(n);
    if (n < 5) s.user_phase_ns = {{"augment", 40}};
    s.parts.loss_ns = 10 * n;
    r.add(s, no_warmup());
  }
  const StepBlock& block = r.rollups.at(0).front();
  EXPECT_DOUBLE_EQ(block.user_mean_ns.at("augment"), 20);
  EXPECT_DOUBLE_EQ(block.part_mean_ns.at("loss"), 45);
  EXPECT_EQ(block.part_mean_ns.count("epoch_start"), 0u);
}

TEST(History, EveryLengthIsCoveredOnce) {
  RankHistory r;
  for (int64_t n = 0; n < 24'321; ++n) {
    r.add(step(n), no_warmup());
    if (n % 1117 == 0 || (n > 1990 && n < 2030)) {
      EXPECT_EQ(covered(r), numbers(0, n + 1)) << n;
      EXPECT_EQ(covered(r, Finest::kTenSteps), numbers(0, n + 1)) << n;
    }
  }
  EXPECT_EQ(covered(r), numbers(0, 24'321));
  EXPECT_LT(r.steady_blocks(Finest::kTenSteps).size(), r.steady_blocks().size() - 1700);
}

TEST(History, AMillionStepsAreBoundedAndTheirMeanIsExact) {
  RankHistory r;
  const int64_t steps = 1'000'000;
  int64_t naive = 0;
  for (int64_t n = 0; n < steps; ++n) {
    r.add(step(n), no_warmup());
    naive += n % 700;
  }
  size_t blocks_kept = r.raw.size();
  EXPECT_LE(r.raw.size(), RankHistory::kMaxRaw);
  for (const auto& level : r.rollups) {
    EXPECT_LE(level.size(), RankHistory::kMaxRollups);
    blocks_kept += level.size();
  }
  EXPECT_LE(blocks_kept, 10'000u);
  double sum = 0;
  int64_t count = 0, last = -1;
  for (const StepBlock& b : r.steady_blocks()) {
    EXPECT_EQ(b.first_step, last + 1);
    last = b.last_step;
    count += b.count;
    sum += b.mean_ns[static_cast<size_t>(Phase::kForward)] * static_cast<double>(b.count);
  }
  EXPECT_EQ(count, steps);
  EXPECT_NEAR(sum, static_cast<double>(naive), static_cast<double>(naive) * 1e-12);
}

TEST(History, StepsThatAreNotSteadyDoNotPushSteadyOnesOut) {
  RankHistory r;
  std::vector<int64_t> expected;
  for (int64_t n = 0; n < 12'000; ++n) {
    StepSample s = step(n);
    s.profiled = n >= 1003 && n < 9'000;
    if (!s.profiled) expected.push_back(n);
    r.add(s, no_warmup());
  }
  std::vector<int64_t> seen;
  for (const StepBlock& b : r.steady_blocks()) {
    ASSERT_TRUE(b.count == b.last_step - b.first_step + 1 || b.last_step < 1003 ||
                b.first_step >= 9'000);
    for (int64_t n = b.first_step; n <= b.last_step; ++n) seen.push_back(n);
  }
  EXPECT_EQ(seen, expected);
}

TEST(History, AHistoryReadBackGoesOnWhereItWas) {
  RankHistory whole, first;
  for (int64_t n = 0; n < 5'000; ++n) {
    whole.add(step(n), no_warmup());
    if (n < 2'345) first.add(step(n), no_warmup());
  }
  RankHistory loaded = first;
  loaded.unrolled_steps = -1;
  for (int64_t n = 2'345; n < 5'000; ++n) loaded.add(step(n), no_warmup());
  EXPECT_EQ(covered(loaded), numbers(0, 5'000));
  ASSERT_EQ(loaded.rollups.size(), whole.rollups.size());
  for (size_t level = 0; level < whole.rollups.size(); ++level)
    EXPECT_EQ(loaded.rollups[level].size(), whole.rollups[level].size()) << level;
}

TEST(History, WhatLiesOutsideTheStepsIsKnownApart) {
  RankHistory r;
  for (int64_t n = 1; n < 4; ++n) (void)r.add(step(n), no_warmup());  // 1000 to 4000
  const auto validation = [&](int64_t begin_ns, int64_t end_ns) {
    r.add(Occurrence{.rank = 0,
                     .kind = OccurrenceKind::kValidation,
                     .step = 0,
                     .begin_ns = begin_ns,
                     .end_ns = end_ns});
  };
  validation(2000, 2500);
  validation(900, 1100);  // in part
  EXPECT_EQ(r.outside_ns, 0);
  validation(300, 1000);
  validation(4000, 4020);
  EXPECT_EQ(r.outside_ns, 720);
}

TEST(History, OccurrencesAreCountedAndTheNewestKept) {
  RankHistory r;
  for (int64_t n = 0; n < 1000; ++n)
    r.add(Occurrence{
        .rank = 0, .kind = OccurrenceKind::kCheckpoint, .step = n, .begin_ns = n, .end_ns = 2 * n});
  const OccurrenceStats& stats = r.occurrences[static_cast<size_t>(OccurrenceKind::kCheckpoint)];
  EXPECT_EQ(stats.count, 1000);
  EXPECT_EQ(stats.total_ns, 499'500);
  ASSERT_EQ(stats.recent.size(), RankHistory::kMaxOccurrences);
  EXPECT_EQ(stats.recent.back().duration_ns, 999);
}

TEST(History, MemoryCoversTheWholeRunInBoundedSpace) {
  RankHistory r;
  for (int64_t n = 0; n < 100'000; ++n) {
    MemorySample sample;
    sample.mono_ns = sample.step = n;
    r.add(sample);
  }
  EXPECT_LE(r.memory.size(), RankHistory::kMaxMemory);
  EXPECT_GE(r.memory.size(), RankHistory::kMaxMemory / 2);
  EXPECT_EQ(r.memory.front().mono_ns, 0);
  EXPECT_EQ(r.memory.back().mono_ns, 99'999);
  EXPECT_TRUE(std::is_sorted(r.memory.begin(), r.memory.end(),
                             [](const auto& a, const auto& b) { return a.mono_ns < b.mono_ns; }));
}

}  // namespace
}  // namespace stepscope
