// What a commit costs and how large the file gets: the agent commits once a second, for ever.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "base/clock.h"
#include "store/history_fixture.h"
#include "store/store.h"

namespace stepscope::store {
namespace {

StepSample plain_step(int32_t rank, int64_t number) {
  StepSample s;
  s.rank = rank;
  s.step = number;
  s.begin_ns = 1'000'000'000'000 + number * 10'000'000;
  s.end_ns = s.begin_ns + 9'876'543 + number % 1000;
  for (const Phase p : {Phase::kInput, Phase::kForward, Phase::kBackward, Phase::kSync,
                        Phase::kOptimizer, Phase::kOther})
    s[p] = 1'646'090 + number % 997;
  s.parts = {1000, 0, 2000, 3000, 4000, 0};
  s.samples = 32;
  s.fetches = s.backwards = s.optimizer_steps = 1;
  return s;
}

// 8 ranks at 100 steps a second; an hour of it in short: raw steps, rollups and memory are all at
// their bounds.
TEST(StoreCost, EightRanksAtAHundredStepsASecond) {
  fixture::TemporaryFolder folder;
  RunHistory run = fixture::Random(1).run(0, 0);
  for (int r = 0; r < 8; ++r) {
    run.ranks.emplace_back();
    run.ranks.back().rank = r;
  }
  Result<Store> store = Store::create(folder.path);
  ASSERT_TRUE(store) << store.error().message;
  std::vector<double> cost_ms;
  for (int second = 0; second < 260; ++second) {
    for (RankHistory& r : run.ranks) {
      for (int i = 0; i < 100; ++i) r.add(plain_step(r.rank, r.steps), run.settings);
      MemorySample m;
      m.mono_ns = second * 1'000'000'000LL;
      m.rss_bytes = m.anon_bytes = 1'000'000'000;
      m.cpu_cores = 1.0;
      r.add(m);
    }
    const int64_t before = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    const Status stored = store->commit(run, {});
    cost_ms.push_back(static_cast<double>(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - before) / 1e6);
    ASSERT_TRUE(stored) << stored.error().message;
  }
  const auto last_hundred = cost_ms.end() - 100;
  double sum = 0;
  for (auto it = last_hundred; it != cost_ms.end(); ++it) sum += *it;
  std::sort(last_hundred, cost_ms.end());
  ASSERT_TRUE(store->finish(run, {}));
  const auto bytes = std::filesystem::file_size(folder.path + "/run.db");
  std::printf(
      "commit of 800 steps: CPU median %.2f ms, mean %.2f ms, most %.2f ms; run.db %.1f MB\n",
      last_hundred[50], sum / 100, cost_ms.back(), static_cast<double>(bytes) / 1e6);
  EXPECT_LT(last_hundred[10],
            5.0);  // the quiet ones: a neighbour on this machine must not fail the test
  EXPECT_LT(bytes, 40'000'000u);
}

// The file stops growing when the lists are full.
TEST(StoreCost, TheFileIsBounded) {
  fixture::TemporaryFolder folder;
  fixture::Random random(2);
  RunHistory run = random.run(0, 0);
  run.ranks.emplace_back();
  RankHistory& r = run.ranks.back();
  Result<Store> store = Store::create(folder.path);
  ASSERT_TRUE(store) << store.error().message;
  const auto size_after = [&](int64_t steps) {
    for (int64_t i = 0; i < steps; ++i) {
      StepSample s = plain_step(0, r.steps);
      s.user_phase_ns = {{"augment", 5}};
      r.add(std::move(s), run.settings);
      if (i % 1000 == 999) {
        EXPECT_TRUE(store->commit(run, {}));
      }
    }
    EXPECT_TRUE(store->finish(run, {}));
    return std::filesystem::file_size(folder.path + "/run.db");
  };
  const auto early = size_after(30'000), later = size_after(90'000);
  std::printf("run.db after 30,000 steps %.2f MB, after 120,000 %.2f MB\n",
              static_cast<double>(early) / 1e6, static_cast<double>(later) / 1e6);
  EXPECT_LT(static_cast<double>(later), 1.6 * static_cast<double>(early));
}

}  // namespace
}  // namespace stepscope::store
