#include "engine/mean_interval.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace stepscope::engine {
namespace {

// Tables of the t distribution.
TEST(MeanInterval, StudentIsThatOfTheTables) {
  EXPECT_NEAR(student_t(0.05, 1), 12.706, 0.001);
  EXPECT_NEAR(student_t(0.05, 2), 4.303, 0.001);
  EXPECT_NEAR(student_t(0.05, 3), 3.182, 0.005);
  EXPECT_NEAR(student_t(0.01, 5), 4.032, 0.005);
  EXPECT_NEAR(student_t(0.01, 10), 3.169, 0.002);
  EXPECT_NEAR(student_t(0.001, 20), 3.850, 0.002);
  EXPECT_NEAR(student_t(1e-5, 30), 5.30, 0.03);
  EXPECT_NEAR(student_t(0.05, 1e6), 1.960, 0.001);
  EXPECT_GT(student_t(0.05, 2.3), student_t(0.05, 2.9));
}

TEST(MeanInterval, OfEqualPointsIsAPoint) {
  const Mean a = mean_of({{1, 1, 1, 1}, {5, 5, 5, 5}}), b = mean_of({{2, 1}, {7, 7}});
  EXPECT_EQ(a.error, 0);
  const Interval d = difference(a, b, 0.01);
  EXPECT_EQ(d.low, 2);
  EXPECT_EQ(d.high, 2);
}

TEST(MeanInterval, OfOnePointIsUnknown) {
  const Interval d = difference(mean_of({{1}, {5}}), mean_of({{1, 1}, {5, 5}}), 0.01);
  EXPECT_EQ(d.estimate, 0);
  EXPECT_TRUE(std::isinf(d.low) && d.low < 0);
  EXPECT_TRUE(std::isinf(d.high));
  EXPECT_EQ(mean_of({}).value, 0);
}

TEST(MeanInterval, WeightsCountAsSteps) {
  const Mean m = mean_of({{10, 1, 1, 10}, {1, 100, 100, 1}});
  EXPECT_DOUBLE_EQ(m.value, 220.0 / 22);
}

// How often 0 is outside the 99 % interval of two series of the same law.
double false_alarms(double persistence, bool heavy, size_t steps, int pairs) {
  std::mt19937_64 random(2026 + steps);
  std::normal_distribution<double> normal;
  const auto series = [&] {
    WeightedSeries out;
    double state = normal(random);
    for (size_t i = 0; i < steps; ++i) {
      state = persistence * state + std::sqrt(1 - persistence * persistence) * normal(random);
      double value = 100 + 5 * state;
      if (heavy && random() % 25 == 0) value += 40;  // now and then a step that takes far longer
      out.value.push_back(value);
      out.weight.push_back(1);
    }
    return out;
  };
  int outside = 0;
  for (int i = 0; i < pairs; ++i) {
    const Interval d = difference(mean_of(series()), mean_of(series()), 0.01);
    outside += d.low > 0 || d.high < 0;
  }
  return static_cast<double>(outside) / pairs;
}

TEST(MeanInterval, CoversWhateverTheNoise) {
  for (const size_t steps : {40u, 100u, 300u, 1000u})
    for (const double persistence : {0.0, 0.5, 0.9})
      for (const bool heavy : {false, true}) {
        const double alarms = false_alarms(persistence, heavy, steps, 400);
        // 0.9 over 40 steps: four lengths of memory, of which nobody can tell the spread.
        const double most = persistence < 0.9 ? 0.03 : steps >= 100 ? 0.05 : 0.10;
        EXPECT_LE(alarms, most) << steps << " steps, persistence " << persistence << ", heavy "
                                << heavy;
      }
}

}  // namespace
}  // namespace stepscope::engine
