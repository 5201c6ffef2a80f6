#include "tuner/search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace stepscope::tuner {
namespace {

// A made-up loop: what a step takes under given settings, in ms.
struct Pipeline {
  std::string name;
  double compute = 20, fetch = 100;  // of a batch, alone on a core
  double hand_over = 1;              // of a batch from a worker, paid by the loop
  double cpu_share = 1;              // of fetch; the rest waits, and needs no core
  double cores = 4;
  double start = 40, steps_per_epoch = 500;  // of the workers, a worker
  double bursts = 0;                         // gain of one more queued batch a worker
  double batched = 1;                        // fetch, when batch-wise
  bool fails_with_workers = false;
  Space space{};

  LoopRun run(const LoaderSettings& s, int steps, std::mt19937& random, double noise) const {
    LoopRun out;
    if (s.num_workers > 0 && fails_with_workers) {
      out.failed = "cannot pickle";
      return out;
    }
    const double work = s.batch_wise ? batched : fetch;
    double wait = work, loop = compute;
    if (s.num_workers > 0) {
      const double at_once = std::min<double>(s.num_workers, cores / std::max(cpu_share, 0.01));
      loop += hand_over * (1 + 0.1 * std::max(0.0, s.num_workers - cores));
      const double burst = work * bursts / s.prefetch_factor;
      wait = std::max(0.0, work / at_once + burst - loop);
      out.steps_per_epoch = steps_per_epoch;
      if (!s.persistent_workers) out.epoch_start_ms = start * s.num_workers;
    }
    std::lognormal_distribution<double> jitter(0, noise);
    const double drift = jitter(random);
    for (int i = 0; i < steps; ++i) {
      const double f = jitter(random) * drift;
      out.step_ms.push_back((wait + loop) * f);
      out.wait_ms.push_back(wait * f);
    }
    return out;
  }
  double truth(const LoaderSettings& s) const {
    std::mt19937 random(1);
    return rate_of({run(s, 10, random, 1e-9)}).steps_per_s;
  }
};

std::vector<Pipeline> pipelines() {
  const Space four{.user = {}, .most_workers = 4};
  const Space waits{.user = {}, .most_workers = 16};
  Space two = four;
  two.user = {.num_workers = 2, .prefetch_factor = 2};
  Space many = four;
  many.most_workers = 16;
  many.crowded_above = 4;
  many.user = {.num_workers = 16, .prefetch_factor = 2};
  Space tensors = four;
  tensors.batch_wise = true;
  Space epochs = four;
  epochs.user = {.num_workers = 2, .prefetch_factor = 2};
  Space own_epoch = two;
  own_epoch.persist = false;
  return {
      {.name = "cpu in decode", .space = four},
      {.name = "sleep in read", .fetch = 200, .cpu_share = 0.05, .space = waits},
      {.name = "fine", .fetch = 1, .space = two},
      {.name = "too many for the cores", .fetch = 60, .hand_over = 8, .space = many},
      {.name = "restart each epoch",
       .fetch = 30,
       .start = 400,
       .steps_per_epoch = 20,
       .space = epochs},
      {.name = "hand-over costs more than it saves", .fetch = 6, .hand_over = 30, .space = four},
      {.name = "plain tensors", .fetch = 80, .hand_over = 3, .batched = 0.3, .space = tensors},
      {.name = "bursts", .fetch = 70, .bursts = 0.4, .space = two},
      {.name = "keeps its epoch",
       .fetch = 90,
       .start = 100,
       .steps_per_epoch = 30,
       .space = own_epoch},
      {.name = "cannot be pickled", .fails_with_workers = true, .space = four},
  };
}

struct Found {
  LoaderSettings best;
  double share_of_time = 0;
  Stop stop{};
};

Found search(const Pipeline& pipeline, unsigned seed, double noise) {
  constexpr double kStartMs = 3000;
  std::mt19937 random(seed);
  Search search(pipeline.space, {.steps = 60});
  double ms = 0, exhaustive_ms = 0;
  const auto spent = [&](const LoopRun& run) {
    double sum = kStartMs;
    for (const double step : run.step_ms) sum += step;
    return sum;
  };
  while (const auto request = search.next()) {
    LoopRun run = pipeline.run(request->settings, request->steps, random, noise);
    ms += spent(run);
    search.tell(std::move(run), 1);
  }
  for (const LoaderSettings& settings : grid(pipeline.space))
    exhaustive_ms += spent(pipeline.run(settings, 60, random, noise));
  return {search.best(), ms / exhaustive_ms, search.stop()};
}

TEST(Search, ComesNearTheBestOfTheGridInAThirdOfItsTime) {
  int near = 0, quick = 0, runs = 0;
  for (const Pipeline& pipeline : pipelines())
    for (unsigned seed = 1; seed <= 20; ++seed) {
      SCOPED_TRACE(pipeline.name + ", seed " + std::to_string(seed));
      const Found found = search(pipeline, seed, 0.03);
      double best = 0;
      for (const LoaderSettings& settings : grid(pipeline.space))
        if (!(pipeline.fails_with_workers && settings.num_workers > 0))
          best = std::max(best, pipeline.truth(settings));
      const double truth = pipeline.truth(found.best);
      EXPECT_GE(truth, 0.97 * pipeline.truth(pipeline.space.user))
          << as_arguments(found.best);  // never worse, within the drift of a run
      ++runs;
      near += truth >= 0.95 * best;
      quick += found.share_of_time <= 0.35;
      if (truth < 0.95 * best)
        std::printf("%s seed %u: %s gives %.2f of %.2f\n", pipeline.name.c_str(), seed,
                    as_arguments(found.best).c_str(), truth, best);
      if (found.share_of_time > 0.35)
        std::printf("%s seed %u: %.2f of the time\n", pipeline.name.c_str(), seed,
                    found.share_of_time);
    }
  EXPECT_GE(near, 0.9 * runs);
  EXPECT_GE(quick, 0.8 * runs);
}

TEST(Search, StopsAtOnceWhereInputIsFine) {
  Pipeline pipeline{.name = "fine", .fetch = 1};
  pipeline.space.user = {.num_workers = 2, .prefetch_factor = 2};
  pipeline.space.most_workers = 8;
  std::mt19937 random(3);
  Search search(pipeline.space, {});
  search.tell(pipeline.run(search.next()->settings, 60, random, 0.02), 1);
  EXPECT_FALSE(search.next());
  EXPECT_EQ(search.stop(), Stop::kInputFine);
  EXPECT_EQ(search.best(), pipeline.space.user);
}

TEST(Search, NoiseIsNoGain) {  // nothing helps: workers or not, a step takes the same
  int fooled = 0;
  for (unsigned seed = 1; seed <= 100; ++seed) {
    std::mt19937 random(seed);
    std::lognormal_distribution<double> jitter(0, 0.15), drift(0, 0.02);
    Search search({.user = {.num_workers = 2, .prefetch_factor = 2}, .most_workers = 8}, {});
    while (const auto request = search.next()) {
      LoopRun run;
      const double of_run = drift(random);
      for (int i = 0; i < request->steps; ++i) {
        run.step_ms.push_back(50 * jitter(random) * of_run);
        run.wait_ms.push_back(run.step_ms.back() / 2);
      }
      search.tell(run, 1);
    }
    fooled += search.best() != search.space().user;
  }
  EXPECT_LE(fooled, 5);
}

TEST(Search, OwnSettingsThatFailEndIt) {
  Search search({.user = {.num_workers = 2, .prefetch_factor = 2}, .most_workers = 4}, {});
  search.tell({.step_ms = {}, .wait_ms = {}, .failed = "exit code 1"}, 1);
  EXPECT_FALSE(search.next());
  EXPECT_EQ(search.stop(), Stop::kOwnFailed);
}

TEST(Search, WhatMustNotChangeDoesNot) {
  Space space{.user = {.num_workers = 1, .prefetch_factor = 2}, .most_workers = 8};
  space.change_workers = false;
  space.persist = false;
  Pipeline pipeline{.name = "iterable", .space = space};
  std::mt19937 random(5);
  Search search(space, {});
  while (const auto request = search.next()) {
    EXPECT_EQ(request->settings.num_workers, 1);
    EXPECT_FALSE(request->settings.persistent_workers);
    EXPECT_FALSE(request->settings.pin_memory);
    EXPECT_FALSE(request->settings.batch_wise);
    search.tell(pipeline.run(request->settings, request->steps, random, 0.02), 1);
  }
  EXPECT_GT(search.trials().size(), 1u);
}

TEST(Search, ALoweredLimitHolds) {
  Pipeline pipeline{.name = "memory", .cores = 16};
  pipeline.space = {.user = {}, .most_workers = 16};
  std::mt19937 random(5);
  Search search(pipeline.space, {});
  for (bool lowered = false; const auto request = search.next(); lowered = true) {
    EXPECT_LE(request->settings.num_workers, lowered ? 2 : 16);
    search.allow({.workers = 2, .crowded_above = 2});
    search.tell(pipeline.run(request->settings, request->steps, random, 0.02), 1);
  }
}

TEST(Space, TheGridHoldsEachOnceTheOwnFirst) {
  Space space{.user = {.num_workers = 3, .prefetch_factor = 5}, .most_workers = 4};
  space.pin = true;
  const std::vector<LoaderSettings> all = grid(space);
  EXPECT_EQ(all.front(), space.user);
  EXPECT_EQ(std::set<LoaderSettings>(all.begin(), all.end()).size(), all.size());
  EXPECT_EQ(worker_ladder(space), (std::vector<int>{0, 1, 2, 3, 4}));
  // 2 without workers; 4 numbers of workers x 4 prefetch x persistent x pinned
  EXPECT_EQ(all.size(), 2u + 4u * 4 * 2 * 2);
}

}  // namespace
}  // namespace stepscope::tuner
