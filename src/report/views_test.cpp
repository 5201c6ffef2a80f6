#include "report/views.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "report/events.h"
#include "report/heatmap.h"
#include "report/ranks_view.h"
#include "report/resource_series.h"
#include "report/run_fixture.h"
#include "report/series.h"

namespace stepscope::report {
namespace {

// Four ranks; of the 300 steps the first ten take twice as long, each tenth from then on 1.2 times.
RunHistory four_ranks() { return fixture::four_ranks().run; }

json::object ask(const RunHistory& run, std::string name, std::map<std::string, std::string> words,
                 const std::vector<Finding>& findings = {}) {
  const auto answer = view(run, findings, {std::move(name), std::move(words)});
  EXPECT_TRUE(answer) << answer.error().message;
  return answer ? json::parse(*answer).as_object() : json::object{};
}

TEST(Series, OneRankStepByStep) {
  const fixture::Case c = fixture::one_rank();
  const Series s = series(c.run, {.rank = 0, .node = "", .range = {5, 24}, .points = 100});
  EXPECT_EQ(s.first, 0);
  EXPECT_EQ(s.last, 299);
  EXPECT_EQ(s.raw_from, 0);
  EXPECT_EQ(s.warmup_until, 10);
  ASSERT_EQ(s.points.size(), 20u);
  EXPECT_EQ(s.points[0].first_step, 5);
  EXPECT_NEAR(s.points[0].total_ms, 200, 1e-5);   // warm-up
  EXPECT_NEAR(s.points[5].total_ms, 100, 1e-5);   // step 10
  EXPECT_NEAR(s.points[14].total_ms, 120, 1e-5);  // step 19
  EXPECT_NEAR(s.points[5].phase_ms[static_cast<size_t>(Phase::kInput)], 38, 1e-5);
  EXPECT_NEAR(s.points[5].time_s, 10 * 0.2 + 0.1, 1e-5);
}

TEST(Series, ManyStepsArePutTogether) {
  const fixture::Case c = fixture::one_rank();
  const Series s = series(c.run, {.rank = {}, .node = "", .range = {}, .points = 30});
  ASSERT_EQ(s.points.size(), 30u);
  EXPECT_EQ(s.points[1].first_step, 10);
  EXPECT_EQ(s.points[1].last_step, 19);
  EXPECT_EQ(s.points[1].count, 10);
  EXPECT_NEAR(s.points[1].total_ms, 102, 1e-5);
  EXPECT_NEAR(s.points[1].total_min_ms, 100, 1e-5);
  EXPECT_NEAR(s.points[1].total_max_ms, 120, 1e-5);
}

TEST(Series, OldStepsStandInRollupsAndEachOnce) {
  const RunHistory run =
      fixture::run_of({fixture::rank_of({.forward = 1, .backward = 1}, 0, 1, 3210)});
  const Series s = series(run, {.rank = {}, .node = "", .range = {}, .points = 2000});
  EXPECT_EQ(s.raw_from, 1210);
  EXPECT_EQ(s.warmup_until, 10);  // the warm-up itself is in no rollup, and no longer known
  int64_t next = *s.first;
  for (const SeriesPoint& point : s.points) {
    EXPECT_EQ(point.first_step, next);
    EXPECT_EQ(point.count, point.last_step - point.first_step + 1);
    next = point.last_step + 1;
  }
  EXPECT_EQ(next, 3210);
}

TEST(Series, PhasesOfAPointAddUpToItsTotal) {
  for (const fixture::Case& c : {fixture::one_rank(), fixture::four_ranks(),
                                 fixture::drops_and_notices(), fixture::many_ranks()})
    for (const SeriesPoint& point : series(c.run, {}).points) {
      double sum = 0;
      for (const double ms : point.phase_ms) sum += ms;
      EXPECT_NEAR(sum, point.total_ms, 1e-6) << c.name << ' ' << point.first_step;
    }
}

TEST(Series, OfNoStepsIsEmpty) {
  const Series s = series(fixture::no_steps().run, {});
  EXPECT_FALSE(s.first);
  EXPECT_TRUE(s.points.empty());
  const json::object answer = ask(fixture::no_steps().run, "series", {});
  EXPECT_TRUE(answer.at("first").is_null());
  EXPECT_TRUE(answer.at("total_ms").as_array().empty());
}

TEST(Series, WhatWasNotMeasuredIsNull) {
  const json::object answer = ask(fixture::one_rank().run, "series", {{"points", "3"}});
  for (const json::value& phase : answer.at("phases").as_array())
    if (phase.at("name") == "sync") {
      EXPECT_TRUE(phase.at("ms").as_array()[0].is_null());
    }
}

TEST(RanksView, TheWorstComesFirst) {
  const RanksView view = ranks_view(four_ranks(), {});
  ASSERT_EQ(view.rows.size(), 4u);
  EXPECT_EQ(view.window_steps, 100);
  EXPECT_EQ(view.rows[0].rank, 2);
  EXPECT_NEAR(*view.rows[0].late_ms, 48 * 1.02, 0.01);  // own time above the fastest's
  EXPECT_NEAR(*view.rows[1].late_ms, 0, 0.01);
  EXPECT_NEAR(*view.rows[0].total_ms, 150 * 1.02, 0.01);
  EXPECT_NEAR(*view.rows[0].phase_ms.at("input"), 53 * 1.02, 0.01);
  EXPECT_EQ(view.rows[0].step, 299);
  EXPECT_FALSE(view.rows[0].trend_ms.empty());
  EXPECT_LE(view.rows[0].trend_ms.size(), static_cast<size_t>(RanksRow::kTrend));
}

TEST(RanksView, SortsFiltersAndPages) {
  const RunHistory run = fixture::many_ranks().run;
  const RanksView page = ranks_view(run, {.by_node = false,
                                          .sort = "rank",
                                          .ascending = true,
                                          .filter = "",
                                          .offset = 60,
                                          .limit = 10});
  EXPECT_EQ(page.total, 63);
  ASSERT_EQ(page.rows.size(), 3u);
  EXPECT_EQ(page.rows[2].rank, 63);
  const RanksView one = ranks_view(run, {.by_node = false,
                                         .sort = "rank",
                                         .ascending = true,
                                         .filter = "12",
                                         .offset = 0,
                                         .limit = 10});
  ASSERT_EQ(one.rows.size(), 1u);
  EXPECT_EQ(one.rows[0].rank, 12);
}

TEST(RanksView, NodesAreMeansOverTheirRanks) {
  RunHistory run = four_ranks();
  run.ranks[2].node = run.ranks[3].node = "other";
  const RanksView view = ranks_view(run, {.by_node = true,
                                          .sort = "late_ms",
                                          .ascending = false,
                                          .filter = "",
                                          .offset = 0,
                                          .limit = 10});
  ASSERT_EQ(view.rows.size(), 2u);
  EXPECT_EQ(view.rows[0].node, "other");
  EXPECT_EQ(view.rows[0].ranks, 2);
  EXPECT_NEAR(*view.rows[0].late_ms, 24 * 1.02, 0.01);
  EXPECT_EQ(*view.rows[0].memory_bytes, 2LL << 30);
}

TEST(Heatmap, ShowsHowLateEachRankWas) {
  const Heatmap map = heatmap(four_ranks(), {.value = "late",
                                             .by_node = false,
                                             .in_order = false,
                                             .range = {},
                                             .columns = 30,
                                             .rows = 2});
  EXPECT_EQ(map.of, 4);
  ASSERT_EQ(map.rows.size(), 2u);
  EXPECT_EQ(map.rows[0].rank, 2);
  ASSERT_EQ(map.first_step.size(), 30u);
  EXPECT_NEAR(*map.rows[0].ms[0], 96, 1e-3);  // warm-up
  EXPECT_NEAR(*map.rows[0].ms[1], 48 * 1.02, 1e-3);
  EXPECT_NEAR(*map.max_ms, 96, 1e-3);
}

// Two ranks that wait for each other once a step of 100 ms: rank 1 is ready 10 ms later, and in each
// fifth step rank 0 is.
RunHistory two_that_wait() {
  RunHistory run = fixture::run_of({});
  for (int32_t r = 0; r < 2; ++r) {
    RankHistory rank = fixture::rank_of({.forward = 60, .sync = 40}, r, 2, 0);
    rank.facts |= kFactDdp;
    for (int64_t n = 0; n < 60; ++n) {
      StepSample s = fixture::step_of({.forward = 60, .sync = 40}, r, n, rank.last_end_ns);
      const bool late = (n % 5 == 4) == (r == 0);
      s.syncs.push_back({.group = 7,
                         .index = static_cast<uint32_t>(n),
                         .members = 2,
                         .ready_ns = s.end_ns - fixture::ns(late ? 10 : 20),
                         .leave_ns = s.end_ns - fixture::ns(5),
                         .together = true});
      rank.add(std::move(s), Settings{});
    }
    run.ranks.push_back(std::move(rank));
  }
  return run;
}

TEST(Heatmap, LatenessIsOfTheWorkBetweenSyncPoints) {
  const Heatmap map = heatmap(two_that_wait(), {.value = "late",
                                                .by_node = false,
                                                .in_order = true,
                                                .range = {20, 29},
                                                .columns = 10,
                                                .rows = 2});
  ASSERT_EQ(map.first_step.size(), 10u);
  for (size_t column = 0; column < 10; ++column) {
    const bool turned = column % 5 == 4;
    EXPECT_NEAR(*map.rows[0].ms[column], turned ? 10 : 0, 0.01) << column;
    EXPECT_NEAR(*map.rows[1].ms[column], turned ? 0 : 10, 0.01) << column;
  }
  const RanksView view = ranks_view(two_that_wait(), {});
  EXPECT_EQ(view.rows[0].rank, 1);
  EXPECT_NEAR(*view.rows[0].late_ms, 8, 0.01);
  EXPECT_NEAR(*view.rows[1].late_ms, 2, 0.01);
}

TEST(Heatmap, OfAPhaseInTheOrderOfRanks) {
  const Heatmap map = heatmap(four_ranks(), {.value = "input",
                                             .by_node = false,
                                             .in_order = true,
                                             .range = {10, 18},
                                             .columns = 400,
                                             .rows = 4});
  ASSERT_EQ(map.rows.size(), 4u);
  ASSERT_EQ(map.first_step.size(), 9u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(map.rows[i].rank, static_cast<int32_t>(i));
    EXPECT_NEAR(*map.rows[i].ms[0], i == 2 ? 53 : 5, 1e-5);
  }
}

TEST(Heatmap, OfOneRankKnowsNoLateness) {
  const Heatmap map = heatmap(fixture::one_rank().run, {});
  ASSERT_EQ(map.rows.size(), 1u);
  EXPECT_FALSE(map.max_ms);
}

TEST(ResourceSeries, OfEachRank) {
  const ResourceSeries all = resource_series(fixture::one_rank().run, 100);
  ASSERT_EQ(all.time_s.size(), 31u);  // both ends of 30 moments
  ASSERT_EQ(all.series.size(), 2u);   // cores and memory; the others were not read
  EXPECT_EQ(all.series[0].name, "cpu_cores");
  EXPECT_NEAR(*all.series[0].values[0], 0.8, 1e-5);
  EXPECT_EQ(*all.series[1].values[0], static_cast<double>(1LL << 30));
}

TEST(ResourceSeries, OfManyRanksByNodeAndTheLargest) {
  RunHistory run = fixture::many_ranks().run;
  for (MemorySample& m : run.ranks[5].memory) m.rss_bytes = 3LL << 30;
  const ResourceSeries all = resource_series(run, 10);
  size_t nodes = 0, ranks = 0;
  for (const auto& one : all.series) {
    if (one.name != "memory_bytes") continue;
    ++(one.rank ? ranks : nodes);
    if (!one.rank) {
      EXPECT_NEAR(*one.values[1], 65.0 * (1LL << 30), 1e3);
    }
  }
  EXPECT_EQ(nodes, 1u);
  EXPECT_EQ(ranks, ResourceSeries::kWorst);
}

TEST(Events, TheLongestOfTheRanksAndTheFindings) {
  RunHistory run = four_ranks();
  for (RankHistory& rank : run.ranks)
    rank.add(Occurrence{rank.rank, OccurrenceKind::kCheckpoint, 50, 7'000'000'000,
                        7'000'000'000 + (rank.rank + 1) * 1'000'000});
  Finding f = fixture::input_bound();
  const auto all = events(run, {f}, {});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].kind, "finding");
  EXPECT_EQ(all[0].step, 10);
  EXPECT_EQ(all[1].kind, "checkpoint");
  EXPECT_EQ(all[1].rank, 3);
  EXPECT_EQ(*all[1].duration_ms, 4);
  EXPECT_NEAR(*all[1].time_s, 7.0 - static_cast<double>(run.ranks[3].first_begin_ns) / 1e9, 1e-5);
  EXPECT_EQ(all[1].text, "in 4 ranks");
  EXPECT_EQ(events(run, {f}, {300, 400}).size(), 0u);
  EXPECT_EQ(events(run, {f}, {49, 51}).size(), 2u);  // the finding spans it
}

TEST(Events, AreBoundedAndKeepTheFindings) {
  RunHistory run = fixture::one_rank().run;
  for (StepSample& s : run.ranks[0].raw) s[Phase::kGc] = s.total_ns() / 10;
  for (auto& stats : run.ranks[0].occurrences)
    for (int64_t i = 0; i < 5000; ++i) stats.recent.push_back({i, i + 1, i});
  const auto all = events(run, {fixture::input_bound()}, {});
  EXPECT_EQ(all.size(), kMostEvents);
  EXPECT_EQ(std::count_if(all.begin(), all.end(), [](const Event& e) { return e.finding; }), 1);
}

TEST(Views, WhatIsNotUnderstoodIsNamed) {
  const RunHistory run = four_ranks();
  const auto refused = [&](const char* name, std::map<std::string, std::string> words) {
    const auto answer = view(run, {}, {name, std::move(words)});
    EXPECT_FALSE(answer);
    return answer ? "" : answer.error().message + " | " + answer.error().hint;
  };
  EXPECT_EQ(refused("series", {{"rank", "9"}}),
            "rank=9 is not understood | 4 ranks were seen, the last is 3");
  EXPECT_NE(refused("series", {{"points", "0"}}).find("1 to 2000"), std::string::npos);
  EXPECT_NE(refused("series", {{"from", "9"}, {"to", "3"}}).find("to=3"), std::string::npos);
  EXPECT_NE(refused("heatmap", {{"value", "\x1b[31m"}}).find("value="), std::string::npos);
  EXPECT_EQ(refused("heatmap", {{"value", "\x1b[31m"}}).find('\x1b'), std::string::npos);
  EXPECT_NE(refused("ranks", {{"sort", "nonsense"}}).find("late_ms"), std::string::npos);
  EXPECT_NE(refused("events", {{"colour", ""}}).find("from, to"), std::string::npos);
  EXPECT_NE(refused("nothing", {}).find("events"), std::string::npos);
}

TEST(Views, EveryViewOfEveryRunIsOneLineOfJson) {
  for (const fixture::Case& c :
       {fixture::one_rank(), fixture::four_ranks(), fixture::no_steps(), fixture::accelerator(),
        fixture::drops_and_notices(), fixture::many_ranks(), fixture::warmup_only()})
    for (const char* name : {"series", "ranks", "heatmap", "resources", "events"}) {
      const auto answer = view(c.run, c.findings, {name, {}});
      ASSERT_TRUE(answer) << c.name << ' ' << name;
      EXPECT_EQ(answer->find('\n'), answer->size() - 1);
      EXPECT_TRUE(json::parse(*answer).is_object());
    }
}

}  // namespace
}  // namespace stepscope::report
