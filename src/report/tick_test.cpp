#include "report/tick.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "report/run_fixture.h"
#include "report/series.h"

namespace stepscope::report {
namespace {

json::object tick(const RunHistory& run, std::optional<int64_t> since) {
  return json::parse(tick_json(run, since, 0.25)).as_object();
}

TEST(Tick, SaysWhatSeriesSaysOfTheNewestSteps) {
  RunHistory run = fixture::four_ranks().run;
  run.live = true;
  const json::object out = tick(run, 289);
  EXPECT_EQ(out.at("type"), "tick");
  EXPECT_EQ(out.at("state"), "live");
  EXPECT_EQ(out.at("step"), 299);
  EXPECT_EQ(out.at("age_s"), 0.25);
  const Series asked = series(run, {.rank = {}, .node = "", .range = {290, 299}, .points = 100});
  const json::object whole = json::parse(print_json(to_json(asked), false)).as_object();
  const json::object& got = out.at("series").as_object();
  for (const char* column : {"first_step", "last_step", "count", "time_s", "total_ms",
                             "total_min_ms", "total_max_ms", "phases"})
    EXPECT_EQ(got.at(column), whole.at(column)) << column;
  EXPECT_FALSE(got.contains("gap"));
}

TEST(Tick, WithoutNewsHasNoSeries) {
  const RunHistory run = fixture::four_ranks().run;
  EXPECT_FALSE(tick(run, 299).contains("series"));
  EXPECT_FALSE(tick(run, std::nullopt).contains("series"));
  const json::object none = tick(fixture::no_steps().run, 3);
  EXPECT_TRUE(none.at("step").is_null());
  EXPECT_FALSE(none.contains("series"));
}

TEST(Tick, IsBoundedAndSaysWhatItLeftOut) {
  const RunHistory run =
      fixture::run_of({fixture::rank_of({.forward = 1, .backward = 1}, 0, 1, 900)});
  const json::object out = tick(run, 10);
  const json::object& got = out.at("series").as_object();
  EXPECT_EQ(std::ssize(got.at("count").as_array()), kMostSteps);
  EXPECT_EQ(got.at("first_step").as_array()[0], 400);
  EXPECT_TRUE(got.at("gap").as_bool());
}

TEST(Tick, AStepThatOneRankHasNotEndedIsNotNewestYet) {
  RunHistory run = fixture::four_ranks().run;
  run.ranks[1].raw.resize(run.ranks[1].raw.size() - 1);
  EXPECT_EQ(newest_step(run), 299);  // most have
  run.ranks.resize(2);
  EXPECT_EQ(newest_step(run), 298);
}

TEST(Tick, ARestartBeginsAnew) {
  RunHistory run = fixture::run_of({fixture::rank_of({.forward = 1, .backward = 1}, 0, 1, 30)});
  run.ranks[0].add(fixture::step_of({.forward = 1}, 0, 0, run.ranks[0].last_end_ns + 5), {});
  const json::object out = tick(run, 29);
  EXPECT_EQ(out.at("step"), 0);
  EXPECT_TRUE(out.at("series").at("gap").as_bool());
  EXPECT_EQ(out.at("series").at("count").as_array().size(), 1u);
}

}  // namespace
}  // namespace stepscope::report
