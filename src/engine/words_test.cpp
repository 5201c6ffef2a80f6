#include "engine/words.h"

#include <gtest/gtest.h>

namespace stepscope::engine {
namespace {

TEST(Words, Numbers) {
  EXPECT_EQ(percent(0.384), "38 %");
  EXPECT_EQ(percent(0.0996), "10 %");
  EXPECT_EQ(percent(0.052), "5.2 %");
  EXPECT_EQ(percent(1), "100 %");
  EXPECT_EQ(milliseconds(0.236), "0.24 ms");
  EXPECT_EQ(milliseconds(3.14), "3.1 ms");
  EXPECT_EQ(milliseconds(31.4), "31 ms");
  EXPECT_EQ(milliseconds(2430), "2.4 s");
  EXPECT_EQ(bytes(500), "500 B");
  EXPECT_EQ(bytes(64 << 20), "64 MB");
  EXPECT_EQ(bytes(1.25 * (1 << 30)), "1.2 GB");
  EXPECT_EQ(number(2.04), "2");
  EXPECT_EQ(number(1.5), "1.5");
  EXPECT_EQ(plural(1, "step", "steps"), "1 step");
  EXPECT_EQ(plural(0, "step", "steps"), "0 steps");
}

TEST(Words, RangesOfRanks) {
  EXPECT_EQ(ranges({}), "");
  EXPECT_EQ(ranges({3}), "3");
  EXPECT_EQ(ranges({12, 8, 10, 9}), "8-10, 12");
}

}  // namespace
}  // namespace stepscope::engine
