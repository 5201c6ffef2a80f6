#include "engine/theil_sen.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace stepscope::engine {
namespace {

std::vector<Point> line(size_t count, double slope, double noise, uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<Point> out;
  for (size_t i = 0; i < count; ++i) {
    const auto x = static_cast<double>(i);
    out.push_back({x, 100 + slope * x + noise * normal(random)});
  }
  return out;
}

TEST(TheilSen, ExactLine) {
  const auto found = theil_sen(line(20, 3, 0));
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->slope, 3);
  EXPECT_DOUBLE_EQ(found->slope_low, 3);
  EXPECT_DOUBLE_EQ(found->slope_high, 3);
  EXPECT_DOUBLE_EQ(found->at(10), 130);
}

TEST(TheilSen, KnownExample) {
  // By hand: 21 slopes, Kendall's S within 13.05 at 95 %, so the 4th and the 18th slope.
  const std::vector<Point> points = {{0, 1}, {1, 3}, {2, 2}, {3, 5}, {4, 4}, {5, 8}, {6, 6}};
  const auto found = theil_sen(points);
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->slope, 1);
  EXPECT_NEAR(found->slope_low, 1.0 / 3, 1e-9);
  EXPECT_NEAR(found->slope_high, 2, 1e-9);
}

TEST(TheilSen, AFifthOfWildPointsDoesNotMatter) {
  std::vector<Point> points = line(100, 2, 1);
  for (size_t i = 0; i < points.size(); i += 5) points[i].y += 10000;
  const auto found = theil_sen(points);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->slope, 2, 0.2);
}

TEST(TheilSen, LevelNoiseIsRarelyASlope) {
  int claimed = 0;
  for (uint64_t seed = 1; seed <= 1000; ++seed)
    claimed += theil_sen(line(30, 0, 1, seed))->slope_low > 0 ? 1 : 0;
  EXPECT_LE(claimed, 45);  // 2.5 % a side
}

// Slow waves look like slopes; neighbours that are alike count for less.
TEST(TheilSen, WavesAreRarelyASlope) {
  int claimed = 0;
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    std::vector<Point> points = line(60, 0, 1, seed);
    for (size_t i = 1; i < points.size(); ++i)
      points[i].y = 100 + 0.6 * (points[i - 1].y - 100) + points[i].y - 100;
    claimed += theil_sen(points)->slope_low > 0 ? 1 : 0;
  }
  EXPECT_LE(claimed, 80);
}

TEST(TheilSen, AStaircaseIsASlope) {
  std::vector<Point> points;
  for (int i = 0; i < 20; ++i)
    points.push_back({static_cast<double>(i), static_cast<double>(i / 4)});
  EXPECT_GT(theil_sen(points)->slope_low, 0);
}

TEST(TheilSen, FewPointsHaveNoInterval) {
  EXPECT_FALSE(theil_sen({}));
  EXPECT_FALSE(theil_sen(line(4, 1, 0)));
  const std::vector<Point> same(50, Point{3, 7});
  EXPECT_FALSE(theil_sen(same));
  EXPECT_GT(theil_sen(line(5, 1, 0))->slope_low, 0);
}

TEST(TheilSen, ManyPointsAreThinnedWithoutBias) {
  const auto found = theil_sen(line(20000, 0.5, 50));
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->slope, 0.5, 0.001);
  EXPECT_NEAR(found->at(0), 100, 5);
}

}  // namespace
}  // namespace stepscope::engine
