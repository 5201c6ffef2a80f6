// Comparisons as whole texts: src/report/snapshots/compare_*.txt. STEPSCOPE_UPDATE=1 writes them anew.
#include "report/difference.h"

#include <gtest/gtest.h>

#include "report/run_fixture.h"
#include "report/snapshot.h"
#include "report/text.h"

namespace stepscope::report {
namespace {

using fixture::Shape;

// Noise that repeats every 13 steps, of a mean of 0: steady steps need some.
RunHistory run_of(const char* name, const Shape& shape, int32_t ranks, int64_t steps = 300,
                  double slow_rank_ms = 0) {
  std::vector<RankHistory> all;
  for (int32_t r = 0; r < ranks; ++r) {
    RankHistory rank = fixture::rank_of({}, r, ranks, 0);
    Shape own = shape;
    if (r == 2) own.input += slow_rank_ms;
    if (r != 2) own.sync += slow_rank_ms;
    for (int64_t i = 0; i < steps; ++i) {
      Shape now = own;
      now.forward += 0.3 * static_cast<double>(i * (7 + r) % 13 - 6);
      StepSample step = fixture::step_of(now, r, i, rank.last_end_ns);
      rank.add(step, Settings{});
    }
    all.push_back(std::move(rank));
  }
  RunHistory run = fixture::run_of(std::move(all));
  run.name = name;
  run.id = name;
  run.folder = "/home/me/project/stepscope-runs/" + run.name;
  return run;
}

const Shape kShape{.input = 38, .forward = 20, .backward = 31, .optimizer = 7, .other = 4};

Shape with_forward(double ms) {
  Shape shape = kShape;
  shape.forward = ms;
  return shape;
}

struct Case {
  const char* name;
  RunHistory a, b;
  DifferenceOptions options = {};
};

std::vector<Case> cases() {
  RunHistory other = run_of("other-machine", kShape, 1);
  other.nodes[0].cores_usable = 8;
  other.ranks[0].torch_version = "2.14.0";
  other.exit_code = 1;
  RunHistory odd = run_of("\x1b[31mred<b>&\"", with_forward(26), 1);
  for (StepSample& step : odd.ranks[0].raw) {
    step.user_phase_ns.emplace_back("aug\nment<script>", 5'000'000);
    step.end_ns += 5'000'000;
  }
  std::vector<Case> all;
  all.push_back({"slower", run_of("before", kShape, 1), run_of("after", with_forward(26), 1)});
  all.push_back({"past_the_limit",
                 run_of("before", kShape, 1),
                 run_of("after", with_forward(26), 1),
                 {.max_slowdown = 0.05}});
  all.push_back({"within_the_limit",
                 run_of("before", kShape, 1),
                 run_of("after", with_forward(26), 1),
                 {.max_slowdown = 0.10}});
  all.push_back({"same", run_of("before", kShape, 1), run_of("after", with_forward(20.05), 1)});
  all.push_back({"remarks", run_of("before", kShape, 1), std::move(other)});
  all.push_back({"one_rank", run_of("before", kShape, 4), run_of("after", kShape, 4, 300, 15)});
  all.push_back({"faster", run_of("before", with_forward(26), 4), run_of("after", kShape, 4)});
  all.push_back({"hostile", run_of("before", kShape, 1), std::move(odd)});
  all.push_back({"anyway", run_of("before", kShape, 4), run_of("after", kShape, 2), {{}, true}});
  return all;
}

TEST(Difference, Snapshots) {
  for (const Case& c : cases()) {
    const auto d = difference(c.a, c.b, c.options);
    ASSERT_TRUE(d) << c.name << d.error().message;
    const CardStyle plain{.colour = false, .unicode = true, .width = 80};
    const std::string text = card(*d, plain);
    expect_snapshot(std::string("compare_") + c.name, text);
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = text.find('\n', begin);
      EXPECT_LE(columns(text.substr(begin, end - begin)), 80) << text;
      begin = end + 1;
    }
    const std::string ascii = card(*d, {.colour = false, .unicode = false, .width = 80});
    if (std::string(c.name) == "hostile")
      expect_snapshot("compare_hostile.ascii", ascii);
    else
      EXPECT_EQ(ascii, text);
    if (std::string(c.name) == "past_the_limit")
      expect_snapshot("compare_past_the_limit.colour", card(*d, {.colour = true, .unicode = true}));
  }
}

TEST(Difference, TheLimitIsPassedOnlyByWhatIsRealAndLarger) {
  const auto exceeded = [](double forward_ms, double limit) {
    const auto d = difference(run_of("a", kShape, 1), run_of("b", with_forward(forward_ms), 1),
                              {.max_slowdown = limit});
    return d && d->exceeded;
  };
  EXPECT_TRUE(exceeded(26, 0.05));
  EXPECT_FALSE(exceeded(26, 0.07));
  EXPECT_FALSE(exceeded(20.02, 0));  // noise
  EXPECT_FALSE(exceeded(14, 0.05));  // faster
}

TEST(Difference, RefusesWhatIsNotTheSameWork) {
  RunHistory b = run_of("b", kShape, 1);
  for (StepSample& step : b.ranks[0].raw) step.samples = 64;
  const auto batch = difference(run_of("a", kShape, 1), b);
  ASSERT_FALSE(batch);
  EXPECT_EQ(batch.error().message,
            "a step is not the same work in A and B: 32 samples a step in A, 64 in B");
  EXPECT_NE(batch.error().hint.find("--anyway"), std::string::npos);
  EXPECT_TRUE(difference(run_of("a", kShape, 1), b, {.max_slowdown = {}, .anyway = true}));
  const auto few = difference(run_of("a", kShape, 1), run_of("b", kShape, 1, 25), {{}, true});
  ASSERT_FALSE(few);
  EXPECT_EQ(few.error().message,
            "A and B cannot be compared: B has 15 steady steps, 20 are needed");
  EXPECT_FALSE(difference(RunHistory{}, RunHistory{}));
}

}  // namespace
}  // namespace stepscope::report
