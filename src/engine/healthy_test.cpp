// False alarms: seeded healthy runs, every share below its threshold, noise of several shapes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "engine/engine.h"
#include "engine/verdict.h"
#include "model/facts.h"

namespace stepscope::engine {
namespace {

class Source {
 public:
  explicit Source(uint64_t seed) : random_(seed) {}
  // Normal, heavy-tailed (one step in thirty is three times as long), or with memory (slow waves).
  double factor(int shape, double noise) {
    const double n = normal_(random_);
    if (shape == 0) return std::max(0.1, 1 + noise * n);
    if (shape == 1)
      return std::max(0.1, 1 + noise * n) * (uniform_(random_) < 1.0 / 30 ? 3 : 1) / (1 + 2.0 / 30);
    wave_ = 0.9 * wave_ + std::sqrt(1 - 0.81) * n;
    return std::max(0.1, 1 + noise * wave_);
  }
  int upto(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }

 private:
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
  double wave_ = 0;
};

struct Shape {
  double input = 8, optimizer = 20, between = 6, before = 6, gc = 4, sync = 6, forward = 20,
         backward = 30;
};

RunHistory healthy(uint64_t seed, const Shape& ms) {
  Source source(seed);
  RunHistory run;
  const int ranks = 1 << source.upto(3), steps = 40 + source.upto(400), shape = source.upto(3);
  const double noise = 0.05 + 0.05 * source.upto(3);
  for (int r = 0; r < ranks; ++r) {
    RankHistory& rank = run.ranks.emplace_back();
    rank.rank = r;
    rank.world_size = ranks;
    rank.facts = kFactDataLoader;
    int64_t now = 0;
    for (int i = 0; i < steps; ++i) {
      StepSample step;
      step.rank = r;
      step.step = i;
      step.begin_ns = now;
      const auto add = [&](Phase phase, double mean_ms) {
        const auto ns = static_cast<int64_t>(mean_ms * 1e6 * source.factor(shape, noise));
        step[phase] += ns;
        now += ns;
        return ns;
      };
      add(Phase::kInput, ms.input);
      add(Phase::kForward, ms.forward);
      add(Phase::kBackward, ms.backward);
      add(Phase::kOptimizer, ms.optimizer);
      add(Phase::kGc, ms.gc);
      if (ranks > 1) add(Phase::kSync, ms.sync);
      step.parts.other_between_steps_ns = add(Phase::kOther, ms.between);
      step.parts.other_before_forward_ns = add(Phase::kOther, ms.before);
      step.end_ns = now;
      (void)rank.add(std::move(step), run.settings);
      if (i % 5 == 0) {
        MemorySample sample;
        sample.step = i;
        sample.anon_bytes = static_cast<int64_t>(5e8 * source.factor(shape, noise));
        rank.add(sample);
      }
    }
  }
  return run;
}

TEST(Healthy, FiveHundredRunsUnderTheThresholdsClaimNothing) {
  int possible = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed)
    for (const Finding& finding : diagnose(healthy(seed, {}))) {
      if (finding.severity == Severity::kInfo) continue;
      EXPECT_EQ(finding.confidence, "possible")
          << "seed " << seed << ": " << finding.code << " " << finding.title;
      EXPECT_NE(finding.severity, Severity::kCritical) << "seed " << seed << ": " << finding.code;
      ++possible;
    }
  EXPECT_LE(possible, 10);
}

// Input is exactly 10 % of these: about half of the estimates are above, and at most one in twenty
// may be claimed.
TEST(Healthy, NoiseAtTheThresholdIsPossibleAtMost) {
  int certain = 0, possible = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    Shape shape{.input = 10, .optimizer = 15, .between = 7, .before = 8, .gc = 5, .sync = 0};
    shape.forward = 25;
    for (const Finding& finding : diagnose(healthy(seed, shape))) {
      if (finding.code != "INPUT_BOUND") continue;
      EXPECT_EQ(finding.severity, Severity::kWarning);
      ++(finding.confidence == "certain" ? certain : possible);
    }
  }
  EXPECT_LE(certain, 25);
  EXPECT_GE(possible, 150);
}

// Twice the threshold is claimed in every run.
TEST(Healthy, WhatIsThereIsClaimed) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const Finding verdict = diagnose(healthy(seed, {.input = 35})).front();
    EXPECT_EQ(verdict.code, "INPUT_BOUND") << "seed " << seed;
    EXPECT_EQ(verdict.confidence, "certain") << "seed " << seed;
    EXPECT_EQ(verdict.severity, Severity::kCritical) << "seed " << seed;
  }
}

TEST(Healthy, SameHistorySameFindings) {
  const RunHistory run = healthy(3, {.input = 12});
  const auto a = diagnose(run), b = diagnose(run);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].title, b[i].title);
    EXPECT_EQ(a[i].share, b[i].share);
  }
}

}  // namespace
}  // namespace stepscope::engine
