#include "engine/identify_stragglers.h"

#include <gtest/gtest.h>

#include <cmath>

namespace stepscope::engine {
namespace {

using Ranks = std::vector<int64_t>;
using Times = std::map<int64_t, double>;
using Series = std::map<int64_t, std::vector<double>>;

Ranks named(const Times& times, const StragglerOptions& options = {}) {
  const auto found = identify_stragglers(times, options);
  EXPECT_TRUE(found);
  return *found;
}
Ranks named(const Series& series, const StragglerOptions& options = {}) {
  const auto found = identify_stragglers(series, options);
  EXPECT_TRUE(found);
  return *found;
}

TEST(IdentifyStragglers, NoRanksNoStragglers) {
  EXPECT_EQ(named(Times{}), Ranks{});
  EXPECT_EQ(named(Series{}), Ranks{});
  EXPECT_EQ(named(Times{{0, 5}}), Ranks{});
  EXPECT_EQ(named(Times{{0, 5}}, {.method = "median"}), Ranks{});
}

TEST(IdentifyStragglers, MeanOfAllRanks) {
  EXPECT_EQ(named(Times{{0, 1}, {1, 1}, {2, 1}, {3, 5}}), Ranks{3});
  EXPECT_EQ(named(Times{{0, 1}, {1, 1}, {2, 1}, {3, 3}}),
            Ranks{});  // exactly twice the mean does not exceed it
  EXPECT_EQ(named(Times{{7, 9}, {2, 9}, {0, 1}, {1, 1}, {3, 1}, {4, 1}, {5, 1}, {6, 1}}),
            (Ranks{2, 7}));
  EXPECT_EQ(named(Times{{0, 1}, {1, 1.4}, {2, 1}}, {.threshold_multiplier = 1.2}), Ranks{1});
}

TEST(IdentifyStragglers, MeanNeverFiresForTwoRanksMedianDoes) {
  for (const double slow : {2.0, 10.0, 1e9}) EXPECT_EQ(named(Times{{0, 1}, {1, slow}}), Ranks{});
  EXPECT_EQ(named(Times{{0, 1}, {1, 2}}, {.method = "median"}), Ranks{});
  EXPECT_EQ(named(Times{{0, 1}, {1, 2.1}}, {.method = "median"}), Ranks{1});
}

TEST(IdentifyStragglers, MedianOfTheOthers) {
  EXPECT_EQ(named(Times{{0, 1}, {1, 1}, {2, 1}, {3, 2.5}, {4, 2.5}}, {.method = "median"}),
            (Ranks{3, 4}));
  EXPECT_EQ(named(Times{{0, 1}, {1, 2}, {2, 3.1}}, {.method = "median"}), Ranks{2});
  EXPECT_EQ(named(Times{{0, 1}, {1, 2}, {2, 3}}, {.method = "median"}), Ranks{});
  EXPECT_EQ(named(Times{{0, 0}, {1, 0}, {2, 0.1}}, {.method = "median"}), Ranks{2});
}

TEST(IdentifyStragglers, SeriesAreJudgedByTheirNewestValues) {
  const Series series = {
      {0, {1, 1, 1, 1, 1, 1}}, {1, {9, 9, 9, 1, 1, 1}}, {2, {1, 1, 1, 1, 9, 9}}, {3, {1}}};
  EXPECT_EQ(named(series, {.window = 3}), Ranks{2});
  EXPECT_EQ(named(series, {.threshold_multiplier = 1.5}), (Ranks{1}));
  EXPECT_EQ(named(series, {.method = "median", .window = 2}), Ranks{2});
  const Series one_spike = {{0, {1, 1, 1}}, {1, {1, 50, 1}}, {2, {1, 1, 1}}};
  EXPECT_EQ(named(one_spike, {.window = 3}), Ranks{1});
  EXPECT_EQ(named(one_spike, {.method = "median", .window = 3}), Ranks{});
}

TEST(IdentifyStragglers, WhatIsNotATimeIsAnError) {
  for (const double bad : {std::nan(""), -1.0, HUGE_VAL}) {
    const auto found = identify_stragglers(Times{{0, 1}, {4, bad}});
    ASSERT_FALSE(found);
    EXPECT_NE(found.error().message.find("rank 4"), std::string::npos);
    EXPECT_FALSE(identify_stragglers(Series{{0, {1, 1}}, {1, {bad, 1, 1}}}, {.window = 1}));
  }
  const auto empty = identify_stragglers(Series{{0, {1}}, {1, {}}});
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().message, "rank 1 has no times");
}

TEST(IdentifyStragglers, OptionsAreChecked) {
  EXPECT_FALSE(identify_stragglers(Times{}, {.method = "mode"}));
  EXPECT_FALSE(identify_stragglers(Times{}, {.threshold_multiplier = 0}));
  EXPECT_FALSE(identify_stragglers(Times{}, {.threshold_multiplier = std::nan("")}));
  EXPECT_FALSE(identify_stragglers(Series{}, {.window = 0}));
}

}  // namespace
}  // namespace stepscope::engine
