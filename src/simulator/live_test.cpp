// A run that goes on: when a fault is named and withdrawn, and that looking often gives what looking once gives.
#include <gtest/gtest.h>

#include <cmath>

#include "simulator/trials.h"

namespace stepscope::simulator {
namespace {

int64_t limit_steps(int32_t ranks) {
  return static_cast<int64_t>(std::ceil(std::log2(4.0 * ranks / 1e-4))) + 8;
}

struct Seen {
  int64_t named = -1, withdrawn = -1;  // steps after the fault began and ended
  RunHistory run;
};

Seen watch(const Options& options, int64_t from, int64_t to) {
  Simulator simulator(options);
  Seen out;
  out.run = simulator.start();
  for (int64_t step = 0; simulator.step(out.run); ++step) {
    out.run.comparison = engine::compare_ranks(out.run);
    const auto& episodes = out.run.comparison.episodes;
    const bool open =
        std::any_of(episodes.begin(), episodes.end(), [](const Episode& e) { return !e.ended; });
    if (open && out.named < 0) out.named = step - from + 1;
    if (!open && out.named >= 0 && step > to && out.withdrawn < 0) out.withdrawn = step - to;
  }
  return out;
}

TEST(Live, NamedAndWithdrawnInTimeAsOneEpisode) {
  for (const int32_t ranks : {2, 8, 64})
    for (uint64_t seed = 1; seed <= (ranks == 64 ? 2U : 8U); ++seed) {
      SCOPED_TRACE(std::to_string(ranks) + " ranks, seed " + std::to_string(seed));
      const Seen seen =
          watch(with(seed, ranks, 220, "rank=1 phase=input add=20% from=80 to=149"), 80, 149);
      EXPECT_GE(seen.named, 1);
      EXPECT_LE(seen.named, limit_steps(ranks));
      EXPECT_GE(seen.withdrawn, 1);
      EXPECT_LE(seen.withdrawn, limit_steps(ranks));
      ASSERT_EQ(seen.run.comparison.episodes.size(), 1U);
      const Episode& episode = seen.run.comparison.episodes.front();
      EXPECT_EQ(episode.rank, 1);
      EXPECT_NEAR(static_cast<double>(episode.first_step), 80, 3);
      EXPECT_NEAR(static_cast<double>(episode.last_step), 149, 3);
      ASSERT_FALSE(episode.phases.empty());
      EXPECT_EQ(episode.phases.front().phase, "input");
    }
}

TEST(Live, ANodeIsNamedAtOnceNotRankByRank) {
  Options options = with(3, 32, 160, "node=2 add=20% from=60");
  Simulator simulator(options);
  RunHistory run = simulator.start();
  while (simulator.step(run)) {
    run.comparison = engine::compare_ranks(run);
    for (const Episode& episode : run.comparison.episodes) EXPECT_EQ(episode.scope, Scope::kNode);
  }
  ASSERT_EQ(run.comparison.episodes.size(), 1U);
  EXPECT_EQ(run.comparison.episodes.front().node, "node2");
}

TEST(Live, LookingOftenGivesWhatLookingOnceGives) {
  for (const char* fault :
       {"rank=3 add=20% from=150 to=260", "node=1 add=20% phase=backward from=100",
        "rotating add=15% tokens=yes", "spike add=2s every=60"}) {
    SCOPED_TRACE(fault);
    const Options options = with(5, 16, 400, fault);
    const RunHistory whole = [&] {
      RunHistory run = simulate(options);
      run.comparison = engine::compare_ranks(run);
      return run;
    }();
    Simulator simulator(options);
    RunHistory run = simulator.start();
    for (int64_t step = 1; simulator.step(run); ++step)
      if (step % 7 == 0) {
        // As an agent that was restarted in between: through the text of run.db.
        const auto again = comparison_from_text(to_text(engine::compare_ranks(run)));
        ASSERT_TRUE(again);
        run.comparison = *again;
      }
    run.live = false;
    run.comparison = engine::compare_ranks(run);
    EXPECT_EQ(to_text(run.comparison), to_text(whole.comparison));
  }
}

TEST(Live, TrimmedStepsKeepTheirEpisodes) {
  const Options options = with(7, 2, 2600, "rank=1 add=30% from=100 to=200");
  Simulator simulator(options);
  RunHistory run = simulator.start();
  for (int64_t step = 1; simulator.step(run); ++step)
    if (step % 50 == 0) run.comparison = engine::compare_ranks(run);
  run.live = false;
  run.comparison = engine::compare_ranks(run);
  ASSERT_EQ(run.comparison.episodes.size(), 1U);
  EXPECT_TRUE(run.comparison.episodes.front().ended);
  EXPECT_EQ(run.comparison.steps, 2590);
  EXPECT_LE(run.comparison.blocks.size(), Comparison::kMaxSyncBlocks);
}

TEST(Live, ARestartEndsWhatWasOpen) {
  const Options options = with(9, 4, 120, "rank=2 add=30% from=20");
  RunHistory run = simulate(options);
  run.comparison = engine::compare_ranks(run);
  ASSERT_EQ(run.comparison.episodes.size(), 1U);
  RunHistory second = simulate(with(10, 4, 120, ""));
  for (size_t r = 0; r < run.ranks.size(); ++r) {
    run.ranks[r].attempt = 1;
    for (const StepSample& step : second.ranks[r].raw) (void)run.ranks[r].add(step, run.settings);
  }
  run.comparison = engine::compare_ranks(run);
  ASSERT_EQ(run.comparison.episodes.size(), 1U);
  EXPECT_TRUE(run.comparison.episodes.front().ended);
  EXPECT_EQ(run.comparison.steps, 220);
}

TEST(Live, RanksThatLeaveAndJoinAreNoFault) {
  RunHistory run = simulate(with(4, 8, 300, "rank=3 leave from=150"));
  run.comparison = engine::compare_ranks(run);
  EXPECT_TRUE(run.comparison.episodes.empty());
  EXPECT_GE(run.comparison.steps, 270);
  run = simulate(with(4, 8, 300, "rank=3 join from=150"));
  run.comparison = engine::compare_ranks(run);
  EXPECT_TRUE(run.comparison.episodes.empty());
  EXPECT_GE(run.comparison.steps, 270);
}

}  // namespace
}  // namespace stepscope::simulator
