// Pairs of seeded runs: two of the same law are the same, and what was added to one is found, in its phase, on its rank.
#include "engine/compare_runs.h"

#include <gtest/gtest.h>

#include <cmath>

#include "simulator/trials.h"

namespace stepscope::simulator {
namespace {

using engine::compare_runs;
using engine::Direction;
using engine::RunChange;

struct Tally {
  int pairs = 0, same = 0, faster = 0, slower = 0, phases = 0, ranks = 0;
};

Tally compare_pairs(int pairs, double persistence, bool heavy, int64_t steps,
                    const std::string& fault) {
  Tally tally;
  for (int i = 0; i < pairs; ++i) {
    Draw draw(static_cast<uint64_t>(i) + 31'000);
    const int32_t ranks = draw.below(4) == 0 ? 1 : draw.of(kRankCounts) / 2 + 1;
    Options a = with(static_cast<uint64_t>(2 * i) + 50'000, ranks, steps, "");
    Options b = with(static_cast<uint64_t>(2 * i) + 50'001, ranks, steps, fault);
    a.persistence = b.persistence = persistence;
    a.heavy = b.heavy = heavy;
    const RunHistory run_a = simulate(a), run_b = simulate(b);
    EXPECT_TRUE(engine::incomparable(run_a, run_b).empty());
    const RunChange change = compare_runs(run_a, run_b);
    ++tally.pairs;
    tally.same += change.direction == Direction::kSame;
    tally.slower += change.direction == Direction::kSlower;
    tally.faster += change.direction == Direction::kFaster;
    for (const auto& phase : change.phases) tally.phases += phase.change.real;
    for (const auto& rank : change.ranks) tally.ranks += rank.own.real;
  }
  return tally;
}

TEST(CompareRuns, TheSameTwiceIsTheSame) {
  for (const double persistence : {0.0, 0.6, 0.9})
    for (const bool heavy : {false, true}) {
      const Tally tally = compare_pairs(40, persistence, heavy, 200, "");
      EXPECT_GE(tally.same, 0.95 * tally.pairs) << persistence << " heavy " << heavy;
      // Over all phases of all pairs, and all ranks of all pairs.
      EXPECT_LE(tally.phases, 0.05 * tally.pairs) << persistence << " heavy " << heavy;
      EXPECT_LE(tally.ranks, 0.10 * tally.pairs) << persistence << " heavy " << heavy;
    }
}

TEST(CompareRuns, FivePercentAreFoundWhereTheNoiseAllows) {
  const Tally tally = compare_pairs(60, 0, false, 200, "all phase=forward add=5%");
  EXPECT_GE(tally.slower, 0.98 * tally.pairs);
  EXPECT_GE(tally.phases, 0.98 * tally.pairs);
  const Tally persistent = compare_pairs(40, 0.6, true, 300, "all phase=forward add=5%");
  EXPECT_GE(persistent.slower, 0.9 * persistent.pairs);
  EXPECT_EQ(persistent.faster, 0);
}

TEST(CompareRuns, NamesThePhaseAndTheRank) {
  int right = 0;
  constexpr int kPairs = 20;
  for (uint64_t i = 0; i < kPairs; ++i) {
    const RunHistory a = simulate(with(2 * i, 8, 200, ""));
    const RunHistory b = simulate(with(2 * i + 1, 8, 200, "rank=5 phase=input add=15ms"));
    const RunChange change = compare_runs(a, b);
    ASSERT_EQ(change.ranks.size(), 8u);
    const auto& five = change.ranks[5];
    right += change.direction == Direction::kSlower &&
             change.from_ranks == std::vector<int32_t>{5} && five.phase == "input" &&
             std::fabs(five.phase_change_ms - 15) < 2;
  }
  EXPECT_GE(right, kPairs - 1);
}

TEST(CompareRuns, FindsWhatTwoPhasesExchanged) {
  const RunHistory a = simulate(with(1, 1, 200, "all phase=h2d add=8ms"));
  const RunHistory b = simulate(with(2, 1, 200, "all phase=gc add=8ms"));
  const RunChange change = compare_runs(a, b);
  EXPECT_EQ(change.direction, Direction::kSame);
  for (const auto& phase : change.phases)
    EXPECT_EQ(phase.change.real, phase.name == "h2d" || phase.name == "gc") << phase.name;
}

TEST(CompareRuns, ChangesOfThePhasesAddUpToThatOfTheStep) {
  const RunHistory a = simulate(with(3, 4, 2500, ""));  // old steps are in blocks
  const RunHistory b = simulate(with(4, 4, 3300, "all phase=optimizer add=10ms"));
  const RunChange change = compare_runs(a, b);
  double sum = 0;
  for (const auto& phase : change.phases) sum += phase.change.change_ms.value_or(0);
  EXPECT_NEAR(sum, *change.step.change_ms, 1e-6);
  EXPECT_EQ(change.direction, Direction::kSlower);
  EXPECT_EQ(change.steps_a, 2490);
  EXPECT_EQ(change.steps_b, 3290);
}

TEST(CompareRuns, SaysWhatIsNotComparable) {
  const auto obstacle = [](const RunHistory& a, const RunHistory& b, const std::string& what) {
    for (const engine::Incomparable& one : engine::incomparable(a, b))
      if (one.what == what) return std::optional(one.obstacle);
    return std::optional<engine::Obstacle>();
  };
  RunHistory a = simulate(with(1, 4, 100, ""));
  RunHistory b = simulate(with(2, 2, 100, ""));
  EXPECT_EQ(obstacle(a, b, "world_size"), engine::Obstacle::kWork);
  EXPECT_EQ(obstacle(a, simulate(with(2, 4, 25, "")), "steps"), engine::Obstacle::kTooFew);
  b = simulate(with(2, 4, 100, ""));
  EXPECT_TRUE(engine::incomparable(a, b).empty());
  for (RankHistory& rank : b.ranks) rank.torch_version = "2.14.0";
  EXPECT_FALSE(obstacle(a, b, "torch"));  // unknown in A
  for (RankHistory& rank : a.ranks) rank.torch_version = "2.13.0";
  EXPECT_EQ(obstacle(a, b, "torch"), engine::Obstacle::kRemark);
  for (RankHistory& rank : a.ranks)
    for (StepSample& step : rank.raw) step.samples = 32;
  for (RankHistory& rank : b.ranks)
    for (StepSample& step : rank.raw) step.samples = step.step % 10 == 9 ? 3 : 32;
  EXPECT_FALSE(obstacle(a, b, "samples_per_step"));  // the last batch of an epoch
  for (RankHistory& rank : b.ranks)
    for (StepSample& step : rank.raw) step.samples = 64;
  EXPECT_EQ(obstacle(a, b, "samples_per_step"), engine::Obstacle::kWork);
}

TEST(CompareRuns, OfNothingIsNothing) {
  const RunChange change = compare_runs(RunHistory{}, RunHistory{});
  EXPECT_EQ(change.direction, Direction::kSame);
  EXPECT_FALSE(change.step.change_ms);
  EXPECT_FALSE(engine::incomparable(RunHistory{}, RunHistory{}).empty());
}

}  // namespace
}  // namespace stepscope::simulator
