#include "base/text.h"

#include <gtest/gtest.h>

namespace stepscope {
namespace {

TEST(Text, SplitsAndTrims) {
  EXPECT_EQ(split("a|b||c", '|'), (std::vector<std::string_view>{"a", "b", "", "c"}));
  EXPECT_EQ(split("", '|'), (std::vector<std::string_view>{""}));
  EXPECT_EQ(trim("  x y\r\n"), "x y");
  EXPECT_EQ(trim(" \n"), "");
}

TEST(Text, KeyValuesSurviveAnyValue) {
  const std::string hostile = "a=b\\n\nsecond line\\";
  const auto read = parse_key_values(format_key_values({{"name", hostile}, {"empty", ""}}));
  EXPECT_EQ(read.at("name"), hostile);
  EXPECT_EQ(read.at("empty"), "");
  EXPECT_TRUE(parse_key_values("no equals sign\n\n").empty());
}

TEST(Text, QuotesOnlyWhatAShellWouldSplit) {
  EXPECT_EQ(shell_quote("runs/train-1"), "runs/train-1");
  EXPECT_EQ(shell_quote("my run"), "'my run'");
  EXPECT_EQ(shell_quote("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quote(""), "''");
}

TEST(Text, ControlCharactersDoNotReachTheTerminal) {
  EXPECT_EQ(printable("a\x1b[31mb\n"), "a?[31mb?");
  EXPECT_EQ(printable("abcdef", 3), "abc");
}

TEST(Text, Durations) {
  EXPECT_EQ(parse_duration_s("90"), 90);
  EXPECT_EQ(parse_duration_s("30s"), 30);
  EXPECT_EQ(parse_duration_s("15m"), 900);
  EXPECT_EQ(parse_duration_s("12h"), 43200);
  EXPECT_EQ(parse_duration_s("7d"), 604800);
  for (const char* bad : {"", "d", "-1d", "1w", "1.5h", "99999999999999d", "7 d"})
    EXPECT_FALSE(parse_duration_s(bad)) << bad;
}

}  // namespace
}  // namespace stepscope
