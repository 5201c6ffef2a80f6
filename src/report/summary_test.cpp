#include "report/summary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <boost/json/value_to.hpp>
#include <cmath>
#include <limits>

#include "report/report.h"
#include "report/run_fixture.h"
#include "report/statistics.h"

namespace stepscope::report {
namespace {

namespace json = boost::json;

const PhaseRow& phase(const Summary& s, const std::string& name) {
  for (const PhaseRow& row : s.phases)
    if (row.name == name) return row;
  ADD_FAILURE() << "no phase " << name;
  return s.phases.front();
}

double sum_of_shares(const std::vector<PhaseRow>& rows) {
  double sum = 0;
  for (const PhaseRow& row : rows) sum += row.share.value_or(0);
  return sum;
}

TEST(Summary, PhasesAreOfSteadyStepsAndAddUp) {
  const fixture::Case c = fixture::one_rank();
  const Summary s = summarize(c.run, c.findings);
  EXPECT_EQ(s.steps.count, 300);
  EXPECT_EQ(s.steps.warmup, 10);
  EXPECT_EQ(s.steps.failed, 0);
  EXPECT_NEAR(*s.steps.mean_ms, 102, 1e-5);  // 29 of 290 take 120 ms; warm-up's 200 ms are apart
  EXPECT_NEAR(*s.steps.median_ms, 100, 1e-9);
  EXPECT_NEAR(*s.steps.p95_ms, 120, 1e-5);
  EXPECT_TRUE(s.steps.exact);
  EXPECT_NEAR(*s.steps.warmup_mean_ms, 200, 1e-9);
  EXPECT_NEAR(*phase(s, "input").mean_ms, 38.76, 1e-5);
  EXPECT_NEAR(*phase(s, "input").share, 0.38, 1e-5);
  EXPECT_NEAR(sum_of_shares(s.phases), 1, 1e-9);
  EXPECT_EQ(s.phases.size(), 12u);
  EXPECT_NEAR(*s.samples_per_s, 32 / 0.102, 1e-6);
  EXPECT_NEAR(*s.steps_per_s, 1 / 0.102, 1e-6);
  EXPECT_NEAR(*s.cost_us_per_step, 2.1, 1e-9);
}

TEST(Summary, OneRankHasNoSyncAndNoDeviceCopies) {
  const fixture::Case c = fixture::one_rank();
  const Summary s = summarize(c.run, c.findings);
  for (const char* name : {"sync", "h2d"}) {
    EXPECT_FALSE(phase(s, name).measured) << name;
    EXPECT_FALSE(phase(s, name).mean_ms) << name;
    EXPECT_TRUE(phase(s, name).note.starts_with("not applicable")) << name;
  }
  for (const char* name : {"checkpoint", "validation", "compile", "gc", "profiler"}) {
    EXPECT_TRUE(phase(s, name).measured) << name;
    EXPECT_EQ(*phase(s, name).mean_ms, 0) << name;
  }
}

TEST(Summary, WhatWasNotSeenIsNotZero) {
  fixture::Case c = fixture::drops_and_notices();
  c.run.ranks[0].facts = kFactTorchImported;
  const Summary s = summarize(c.run, c.findings);
  EXPECT_FALSE(phase(s, "input").measured);
  EXPECT_NE(phase(s, "input").note.find("no DataLoader"), std::string::npos);
  EXPECT_FALSE(s.samples_per_s);
  EXPECT_TRUE(phase(s, "augment").user);
  EXPECT_NEAR(sum_of_shares(s.phases), 1, 1e-9);
  const auto says = [&](const char* what) {
    return std::any_of(s.not_measured.begin(), s.not_measured.end(),
                       [&](const auto& n) { return n.what == what; });
  };
  EXPECT_TRUE(says("input"));
  EXPECT_TRUE(says("gpus"));
  EXPECT_FALSE(says("sync"));  // does not apply, so nothing is missing

  RankHistory idle;
  for (int i = 0; i < 40; ++i) {
    StepSample step;
    step.step = i;
    step.begin_ns = i * 1000;
    step.end_ns = step.begin_ns + 1000;
    step[Phase::kOther] = 1000;
    idle.add(step, Settings{});
  }
  const Summary nothing = summarize(fixture::run_of({idle}), {});
  for (const char* name : {"input", "forward", "backward", "optimizer"})
    EXPECT_FALSE(phase(nothing, name).measured) << name;
  EXPECT_EQ(*phase(nothing, "other").share, 1);
}

TEST(Summary, AUsersPhaseOfABuiltInNameAddsToIt) {
  RankHistory r =
      fixture::rank_of({.forward = 60, .backward = 30, .user = {{"input", 10}}}, 0, 1, 100);
  const Summary s = summarize(fixture::run_of({r}), {});
  EXPECT_EQ(s.phases.size(), 12u);
  EXPECT_NEAR(*phase(s, "input").share, 0.1, 1e-9);
}

TEST(Summary, MeansOverRanks) {
  const fixture::Case c = fixture::four_ranks();
  const Summary s = summarize(c.run, c.findings);
  EXPECT_EQ(s.ranks.size(), 4u);
  EXPECT_NEAR(*phase(s, "input").mean_ms, (3 * 5 + 53) / 4.0 * 1.02, 1e-5);
  EXPECT_NEAR(*s.ranks[2].phases[0].mean_ms, 53 * 1.02, 1e-5);
  EXPECT_NEAR(*s.samples_per_s, 4 * 32 / 0.153, 1e-6);  // over ranks
  EXPECT_NEAR(*s.ranks[2].own_ms, 143 * 1.02, 1e-5);
  EXPECT_NEAR(sum_of_shares(s.phases), 1, 1e-9);
  EXPECT_NEAR(*s.resources.at("cpu").average, 4 * 0.945, 1e-9);
  EXPECT_NEAR(*s.resources.at("cpu").peak, 4 * 1.09, 1e-9);
}

TEST(Summary, CountsAreOfTheRankThatCameFurthest) {
  RankHistory killed = fixture::rank_of({.forward = 1}, 0, 2, 30);
  RankHistory other = fixture::rank_of({.forward = 1}, 1, 2, 80);
  const Summary s = summarize(fixture::run_of({killed, other}), {});
  EXPECT_EQ(s.steps.count, 80);
  EXPECT_EQ(s.ranks[0].steps.count, 30);
}

TEST(Summary, OldStepsAreBlocksAndQuantilesStayClose) {
  RankHistory r;
  for (int64_t i = 0; i < 60'000; ++i) {
    StepSample s;
    s.step = i;
    s.begin_ns = r.last_end_ns;
    s.end_ns = s.begin_ns + (i % 1000 == 999 ? 500 : i % 100 < 90 ? 100 : 150) * 1'000'000;
    s[Phase::kForward] = s.total_ns();
    r.add(s, Settings{});
  }
  const Summary s = summarize(fixture::run_of({r}), {});
  EXPECT_FALSE(s.steps.exact);
  EXPECT_NEAR(*s.steps.mean_ms, 105.35, 0.05);
  EXPECT_NEAR(*s.steps.median_ms, 100, 5);
  EXPECT_NEAR(*s.steps.p95_ms, 150, 15);
}

TEST(Summary, NextCommandNamesTheRun) {
  fixture::Case c = fixture::one_rank();
  EXPECT_EQ(summarize(c.run, c.findings).next, "stepscope show train-20260304-101112 --json");
  c.run.folder = "/data/my run";
  EXPECT_EQ(summarize(c.run, c.findings).next, "stepscope show '/data/my run' --json");
  EXPECT_EQ(summarize(fixture::no_steps().run, {}).next, "stepscope doctor");
}

TEST(Json, HasTheFieldsThatWerePromised) {
  const fixture::Case c = fixture::four_ranks();
  const json::value v = json::parse(to_json(summarize(c.run, c.findings)));
  for (const char* key :
       {"schema", "run", "settings", "verdict", "findings", "steps", "phases", "ranks", "resources",
        "throughput", "stepscope", "unobserved", "notices", "not_measured"})
    EXPECT_TRUE(v.as_object().contains(key)) << key;
  EXPECT_EQ(v.at("schema").as_int64(), 1);
  EXPECT_EQ(v.at("verdict"), v.at("findings").at(0));
  EXPECT_EQ(v.at("verdict").at("rank").as_int64(), 2);
  EXPECT_TRUE(v.at("verdict").at("node").is_null());
  for (int i = 0; i < kPhaseCount; ++i)
    EXPECT_TRUE(v.at("phases").as_object().contains(kPhaseNames[static_cast<size_t>(i)]));
  EXPECT_FALSE(v.at("phases").at("h2d").at("measured").as_bool());
  EXPECT_TRUE(v.at("phases").at("h2d").at("mean_ms").is_null());
  EXPECT_EQ(v.at("phases").at("input").at("clock").as_string(), "host");
  EXPECT_TRUE(v.at("resources").at("gpus").at("average").is_null());
  EXPECT_FALSE(v.at("resources").at("gpus").at("measured").as_bool());
  EXPECT_EQ(v.at("resources").at("disk_write").at("average").as_int64(), 0);  // measured, and none
  EXPECT_EQ(v.at("settings").at("input_warning").as_double(), 0.1);
  EXPECT_EQ(v.at("settings").at("warmup_steps").as_int64(), 10);
  EXPECT_EQ(v.at("run").at("started").as_string(), "2026-03-04T10:11:12Z");
  EXPECT_EQ(v.at("run").at("exit_code").as_int64(), 0);
}

TEST(Json, NeverSaysNan) {
  fixture::Case c = fixture::one_rank();
  c.findings[0].share = std::nan("");
  c.findings[0].evidence.push_back({"x", std::numeric_limits<double>::infinity(), ""});
  c.run.nodes[0].memory_bytes.add(std::nan(""));
  const std::string text = to_json(summarize(c.run, c.findings));
  EXPECT_EQ(text.find("nan"), std::string::npos);
  EXPECT_EQ(text.find("inf,"), std::string::npos);
  (void)json::parse(text);
}

TEST(Json, HostileWordsStayData) {
  fixture::Case c = fixture::one_rank();
  c.run.name = "a\"b\\\x1b[31m\xff\xc3 \xe6\xbc\xa2";
  c.run.command = {std::string("nul\0inside", 10), "\xed\xa0\x80"};
  for (StepSample& s : c.run.ranks[0].raw) s.user_phase_ns = {{"\xfe\"\n", 5}, {"", 7}};
  for (const JsonForm form : {JsonForm::kPretty, JsonForm::kCompact}) {
    const std::string text = to_json(summarize(c.run, c.findings), form);
    const json::value v = json::parse(text);
    EXPECT_EQ(v.at("run").at("name").as_string(),
              "a\"b\\\x1b[31m\xef\xbf\xbd\xef\xbf\xbd \xe6\xbc\xa2");
    EXPECT_EQ(v.at("run").at("command").at(0).as_string().size(), 10u);
    EXPECT_TRUE(v.at("phases").as_object().contains(""));
    EXPECT_EQ(text.find('\n') == std::string::npos, form == JsonForm::kCompact);
  }
}

TEST(Statistics, ExactQuantilesAreNumPys) {
  Quantiles four, one, none;
  for (const double ns : {4.0, 1.0, 3.0, 2.0}) {
    StepBlock b;
    b.count = 1;
    b.mean_ns[kTotal] = ns;
    four.add(b);
    if (ns == 4.0) one.add(b);
  }
  EXPECT_DOUBLE_EQ(four.ns(0.5), 2.5);
  EXPECT_DOUBLE_EQ(four.ns(0.95), 3.85);
  EXPECT_DOUBLE_EQ(one.ns(0.95), 4);
  EXPECT_DOUBLE_EQ(none.ns(0.95), 0);
}

}  // namespace
}  // namespace stepscope::report
