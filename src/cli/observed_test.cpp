#include "cli/observed.h"

#include <gtest/gtest.h>

namespace stepscope::cli {
namespace {

using Sentences = std::vector<std::string>;

TEST(Unobserved, NoPythonAtAll) {
  const auto said = unobserved("", {}, false, 0);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("-I, -E or -S"), std::string::npos);
}

TEST(Unobserved, TorchWasNotImported) {
  EXPECT_EQ(unobserved("7|/usr/bin/python3|3.11.2|0\n", {}, false, 0),
            Sentences{"Python 3.11.2 (/usr/bin/python3) did not import torch"});
}

TEST(Unobserved, TheLastLineOfAProcessCounts) {
  EXPECT_EQ(unobserved("7|py|3.9|0\n7|py|3.9|1\n", {}, false, 0),
            Sentences{"Python 3.9 (py) imported torch, but no training step was seen"});
  EXPECT_EQ(
      unobserved("7|py|3.9|0\n7|py|3.9|1\n7|py|3.9|ImportError: no build for 3.9\n8|py|3.9|0\n", {},
                 false, 0),
      Sentences{"Python 3.9 (py): ImportError: no build for 3.9"});
}

TEST(Unobserved, WhatWasRecordedIsNoNews) {
  EXPECT_TRUE(unobserved("7|py|3.11|0\n7|py|3.11|1\n", {7}, true, 1).empty());
  // torchrun imports torch too and trains nothing; its helper does not even import it
  EXPECT_TRUE(unobserved("5|py|3.11|1\n6|py|3.11|0\n7|py|3.11|1\n", {7}, true, 1).empty());
  EXPECT_TRUE(unobserved("", {7}, true, 1).empty());  // a C++ loop
}

TEST(Unobserved, AReasonIsAlwaysSaid) {
  EXPECT_EQ(unobserved("7|py|3.11|1\n8|py|3.11|not recording: /dev/shm is full\n9|py|3.11|not "
                       "recording: /dev/shm is full\n",
                       {7}, true, 1),
            Sentences{"Python 3.11 (py): not recording: /dev/shm is full (2 processes)"});
}

TEST(Unobserved, SegmentsWithoutASingleStep) {
  EXPECT_EQ(unobserved("7|py|3.11|1\n", {7}, false, 1),
            Sentences{"torch was imported, but no training step was seen"});
}

TEST(Unobserved, HostileAndManyLinesStayShort) {
  std::string log = "garbage\n|||\n99999999999|a|b|c\n\x1b[2J";
  for (int i = 1; i <= 50; ++i)
    log += std::to_string(i) + "|py" + std::to_string(i) + "|3.9|\x1b[31m broken\n";
  const auto said = unobserved(log, {}, false, 0);
  EXPECT_EQ(said.size(), 5u);
  EXPECT_EQ(said.back(), "and 45 other kinds");
  for (const std::string& sentence : said) EXPECT_EQ(sentence.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace stepscope::cli
