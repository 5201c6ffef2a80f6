#include "cli/live_findings.h"

#include <gtest/gtest.h>

namespace stepscope::cli {
namespace {

using Lines = std::vector<std::string>;

Finding straggler(int32_t rank, bool ended = false) {
  Finding f;
  f.code = "STRAGGLER";
  f.severity = Severity::kWarning;
  f.pattern = "persistent";
  f.rank = rank;
  f.phase = "input";
  f.ended = ended;
  f.title = "rank " + std::to_string(rank) + " holds the others up";
  return f;
}

TEST(LiveFindings, SaysWhenOneOpensAndWhenItCloses) {
  LiveFindings live;
  EXPECT_EQ(live.lines({straggler(1)}), Lines{"found STRAGGLER: rank 1 holds the others up"});
  EXPECT_EQ(live.lines({straggler(1)}), Lines{});
  EXPECT_EQ(live.lines({straggler(1), straggler(2)}),
            Lines{"found STRAGGLER: rank 2 holds the others up"});
  EXPECT_EQ(live.lines({straggler(1, true), straggler(2)}),
            Lines{"over: STRAGGLER rank 1: rank 1 holds the others up"});
  EXPECT_EQ(live.lines({straggler(1), straggler(2)}),
            Lines{"found STRAGGLER: rank 1 holds the others up"});
}

TEST(LiveFindings, AnotherCauseOfTheSameRankIsTheSameEpisode) {
  LiveFindings live;
  (void)live.lines({straggler(1)});
  Finding other = straggler(1);
  other.phase = "forward";
  EXPECT_EQ(live.lines({other}), Lines{});
}

TEST(LiveFindings, SharesAndDoubtsAreForTheCard) {
  LiveFindings live;
  Finding input;
  input.code = "INPUT_BOUND";
  input.severity = Severity::kCritical;
  Finding possible = straggler(3), slight = straggler(4);
  possible.confidence = "possible";
  slight.severity = Severity::kInfo;
  EXPECT_EQ(live.lines({input, possible, slight}), Lines{});
}

TEST(LiveFindings, WhatIsOfTheWholeRunIsSaidOnce) {
  LiveFindings live;
  Finding spikes;
  spikes.code = "SPIKES";
  spikes.severity = Severity::kWarning;
  spikes.pattern = "spikes";
  spikes.title = "2 of 100 steps took 20 times as long";
  EXPECT_EQ(live.lines({spikes}), Lines{"found SPIKES: 2 of 100 steps took 20 times as long"});
  spikes.title = "3 of 200 steps took 20 times as long";
  EXPECT_EQ(live.lines({spikes}), Lines{});
  EXPECT_EQ(live.lines({}), Lines{});
  EXPECT_EQ(live.lines({spikes}), Lines{});
}

TEST(LiveFindings, AreBounded) {
  LiveFindings live;
  size_t said = 0;
  for (int32_t rank = 0; rank < 1000; ++rank) said += live.lines({straggler(rank)}).size();
  EXPECT_LE(said, LiveFindings::kMostLines + 1);
  EXPECT_GE(said, LiveFindings::kMostLines);
}

}  // namespace
}  // namespace stepscope::cli
