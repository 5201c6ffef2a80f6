#include "exporter/clocks.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace stepscope::exporter {
namespace {

constexpr int64_t kMs = 1'000'000, kS = 1000 * kMs, kStepNs = 100 * kMs;

// Steps of 100 ms that the ranks leave together; the clock of rank r shows offset_s[r] at the start and drifts.
RunHistory run_of(const std::vector<std::pair<int64_t, double>>& clocks, bool one_node,
                  int steps = 600) {
  RunHistory run;
  for (size_t r = 0; r < clocks.size(); ++r) {
    RankHistory& rank = run.ranks.emplace_back();
    rank.rank = static_cast<int32_t>(r);
    rank.node = one_node ? "a" : "node" + std::to_string(r);
    const auto shown = [&](int64_t ns) {
      return clocks[r].first +
             static_cast<int64_t>(static_cast<double>(ns) * (1 + clocks[r].second));
    };
    for (int s = 0; s < steps; ++s) {
      StepSample step;
      step.step = s;
      step.begin_ns = shown(s * kStepNs);
      step.end_ns = shown((s + 1) * kStepNs);
      SyncPoint sync;
      sync.group = 1;
      sync.index = static_cast<uint32_t>(s);
      sync.together = true;
      sync.ready_ns = step.end_ns - kMs;
      sync.leave_ns = step.end_ns;
      step.syncs = {sync};
      rank.raw.push_back(step);
    }
    rank.steps = steps;
    rank.first_begin_ns = rank.raw.front().begin_ns;
    rank.last_end_ns = rank.raw.back().end_ns;
  }
  return run;
}

int64_t furthest_ns(const RunHistory& run) {
  const Clocks clocks(run);
  int64_t most = 0;
  for (size_t r = 0; r < run.ranks.size(); ++r)
    for (const StepSample& step : run.ranks[r].raw)
      most = std::max(most,
                      std::abs(clocks.since_start_ns(r, step.end_ns) - (step.step + 1) * kStepNs));
  return most;
}

TEST(Clocks, NodesAreLaidOverEachOtherAndDriftEvenly) {
  EXPECT_LT(furthest_ns(run_of({{5 * kS, 0}, {90'000 * kS, 100e-6}, {-7 * kS, -80e-6}}, false)),
            kMs / 100);
}

TEST(Clocks, RanksOfANodeShareTheirClock) {
  RunHistory run = run_of({{5 * kS, 0}, {5 * kS, 0}}, true);
  for (StepSample& step : run.ranks[1].raw) step.syncs[0].leave_ns += 3 * kMs;  // it wakes later
  EXPECT_EQ(furthest_ns(run), 0);
}

TEST(Clocks, WithoutAMeetingTheFirstStepsAreTogether) {
  RunHistory run = run_of({{5 * kS, 0}, {900 * kS, 0}}, false);
  for (StepSample& step : run.ranks[1].raw) step.syncs[0].group = 2;
  EXPECT_EQ(furthest_ns(run), 0);
  for (StepSample& step : run.ranks[1].raw) step.syncs.clear();
  EXPECT_EQ(furthest_ns(run), 0);
}

TEST(Clocks, NothingIsKnownOfAnEmptyRun) {
  RunHistory run;
  const Clocks none(run);
  run.ranks.resize(2);
  EXPECT_EQ(Clocks(run).since_start_ns(1, 7), 7);
}

}  // namespace
}  // namespace stepscope::exporter
