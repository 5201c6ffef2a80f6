#include "engine/bootstrap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace stepscope::engine {
namespace {

RatioSeries noisy(std::mt19937_64& random, size_t steps, double value, double rest, double noise,
                  double memory = 0) {
  std::normal_distribution<double> normal;
  RatioSeries out;
  double state = normal(random);
  for (size_t i = 0; i < steps; ++i) {
    state = memory * state + std::sqrt(1 - memory * memory) * normal(random);
    const double v = value * std::max(0.0, 1 + noise * state);
    out.weight.push_back(1);
    out.value.push_back(v);
    out.total.push_back(v + rest * std::max(0.1, 1 + noise * normal(random)));
  }
  return out;
}

Interval of(const RatioSeries& series) { return bootstrap_ratio({&series, 1}); }

// Ten steps to a block, as rollups have it.
RatioSeries rolled_up(const RatioSeries& in, size_t until) {
  RatioSeries out;
  for (size_t i = 0; i < until; i += 10) {
    double value = 0, total = 0;
    for (size_t j = i; j < i + 10; ++j) {
      value += in.value[j] / 10;
      total += in.total[j] / 10;
    }
    out.weight.push_back(10);
    out.value.push_back(value);
    out.total.push_back(total);
  }
  for (size_t i = until; i < in.value.size(); ++i) {
    out.weight.push_back(1);
    out.value.push_back(in.value[i]);
    out.total.push_back(in.total[i]);
  }
  return out;
}

TEST(Bootstrap, NothingIsKnownOfNothing) {
  const Interval none = bootstrap_ratio({});
  EXPECT_EQ(none.estimate, 0);
  const Interval one = of({{1}, {3}, {10}});
  EXPECT_DOUBLE_EQ(one.estimate, 0.3);
  EXPECT_EQ(one.low, 0);
  EXPECT_EQ(one.high, 1);
  EXPECT_EQ(of({{1, 1}, {0, 0}, {0, 0}}).estimate, 0);
}

TEST(Bootstrap, EqualStepsHaveNoSpread) {
  const RatioSeries same{std::vector<double>(50, 1), std::vector<double>(50, 3e7),
                         std::vector<double>(50, 1e8)};
  const Interval share = of(same);
  EXPECT_NEAR(share.estimate, 0.3, 1e-9);
  EXPECT_NEAR(share.low, 0.3, 1e-9);
  EXPECT_NEAR(share.high, 0.3, 1e-9);
}

TEST(Bootstrap, SameStepsSameInterval) {
  std::mt19937_64 random(5);
  const RatioSeries series = noisy(random, 200, 10, 90, 0.3);
  const Interval a = of(series), b = of(series);
  EXPECT_EQ(a.low, b.low);
  EXPECT_EQ(a.high, b.high);
}

// The interval holds the true share in about 95 % of runs, short ones and ones with memory
// included.
TEST(Bootstrap, CoversTheTruth) {
  const struct {
    size_t steps;
    double memory;
    int least;
  } cases[] = {{20, 0, 920}, {60, 0, 920}, {400, 0, 925}, {400, 0.5, 890}, {2000, 0.8, 860}};
  for (const auto& c : cases) {
    std::mt19937_64 random(11);
    int covered = 0;
    for (int run = 0; run < 1000; ++run) {
      const Interval share = of(noisy(random, c.steps, 10, 90, 0.2, c.memory));
      covered += share.low <= 0.1 && 0.1 <= share.high ? 1 : 0;
    }
    EXPECT_GE(covered, c.least) << c.steps << " steps, memory " << c.memory;
    EXPECT_LE(covered, 990) << c.steps << " steps, memory " << c.memory;
  }
}

TEST(Bootstrap, RollupsCountBySteps) {
  std::mt19937_64 random(7);
  const RatioSeries steps = noisy(random, 3000, 10, 90, 0.3);
  const Interval plain = of(steps), mixed = of(rolled_up(steps, 2000));
  EXPECT_NEAR(mixed.estimate, plain.estimate, 1e-9);
  EXPECT_NEAR(mixed.high - mixed.low, plain.high - plain.low, 0.3 * (plain.high - plain.low));
}

TEST(Bootstrap, RanksThatWaitForEachOtherAreNotMoreEvidence) {
  std::mt19937_64 random(9);
  const RatioSeries one = noisy(random, 300, 10, 90, 0.3);
  const std::vector<RatioSeries> eight(8, one);
  const Interval alone = of(one), together = bootstrap_ratio(eight);
  EXPECT_NEAR(together.low, alone.low, 1e-9);
  EXPECT_NEAR(together.high, alone.high, 1e-9);
}

TEST(Bootstrap, MeanOverRanksIsOfPhaseAndStepApart) {
  const std::vector<RatioSeries> ranks = {
      {std::vector<double>(40, 1), std::vector<double>(40, 10), std::vector<double>(40, 100)},
      {std::vector<double>(80, 1), std::vector<double>(80, 90), std::vector<double>(80, 300)}};
  EXPECT_NEAR(bootstrap_ratio(ranks).estimate, 100.0 / 400, 1e-12);
}

}  // namespace
}  // namespace stepscope::engine
