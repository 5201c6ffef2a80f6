#include "report/text.h"

#include <gtest/gtest.h>

namespace stepscope::report {
namespace {

TEST(Text, VisibleEscapesWhatDrivesATerminal) {
  EXPECT_EQ(visible("a\x1b[31m\n\t\x7f", true), "a\\x1b[31m\\x0a\\x09\\x7f");
  EXPECT_EQ(visible("\xe2\x80\xae"
                    "x\xe2\x80\x8b",
                    true),
            "\\u202ex\\u200b");
  EXPECT_EQ(visible("\xff\xc3(", true), "\\xff\\xc3(");
  EXPECT_EQ(visible("\xc0\x80", true), "\\xc0\\x80");           // overlong
  EXPECT_EQ(visible("\xed\xa0\x80", true), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(visible("\xe6\xbc\xa2", true), "\xe6\xbc\xa2");
  EXPECT_EQ(visible("\xe6\xbc\xa2\xf0\x9f\x94\xa5", false), "\\u6f22\\U0001f525");
}

TEST(Text, ColumnsCountWideAndCombining) {
  EXPECT_EQ(columns("abc"), 3);
  EXPECT_EQ(columns("\xe6\xbc\xa2\xe5\xad\x97"), 4);
  EXPECT_EQ(columns("e\xcc\x81"), 1);
  EXPECT_EQ(columns("\xf0\x9f\x94\xa5"), 2);
  EXPECT_EQ(columns("█▓▒░·"), 5);
}

TEST(Text, CutLeavesRoomForTheDots) {
  EXPECT_EQ(cut("abcdef", 6, true), "abcdef");
  EXPECT_EQ(cut("abcdefg", 6, true), "abcde…");
  EXPECT_EQ(cut("abcdefg", 6, false), "abc...");
  EXPECT_EQ(columns(cut("\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97", 6, true)), 5);
}

TEST(Text, FoldsAtBlanksAndBreaksLongWords) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(fold("one two three", 8, 8), (Lines{"one two", "three"}));
  EXPECT_EQ(fold("", 8, 8), Lines{});
  EXPECT_EQ(fold("abcdefghijkl", 8, 8), (Lines{"abcdefgh", "ijkl"}));
  EXPECT_EQ(fold("/home/some/body/x", 13, 13), (Lines{"/home/some/", "body/x"}));
  EXPECT_EQ(fold("one two three four", 18, 8), Lines{"one two three four"});
  EXPECT_EQ(fold("   ", 8, 8), Lines{""});
}

TEST(Text, ValidUtf8ReplacesEachBrokenByte) {
  EXPECT_EQ(valid_utf8("a\xff\xc3"
                       "b"),
            "a\xef\xbf\xbd\xef\xbf\xbd"
            "b");
  EXPECT_EQ(valid_utf8("\xf0\x9f\x94\xa5"), "\xf0\x9f\x94\xa5");
}

}  // namespace
}  // namespace stepscope::report
