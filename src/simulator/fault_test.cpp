#include "simulator/fault.h"

#include <gtest/gtest.h>

#include "simulator/simulator.h"

namespace stepscope::simulator {
namespace {

TEST(Fault, WordsBecomeAFault) {
  const auto fault = parse_fault("rank=17 phase=input add=40ms from=200 to=300");
  ASSERT_TRUE(fault);
  EXPECT_EQ(*fault->who, Who::kRank);
  EXPECT_EQ(fault->number, 17);
  EXPECT_EQ(fault->phase, Phase::kInput);
  EXPECT_EQ(fault->add_ms, 40);
  EXPECT_EQ(fault->from, 200);
  EXPECT_EQ(fault->to, 300);
  EXPECT_EQ(parse_fault("spike add=2s every=50 rank=1")->add_ms, 2000);
  EXPECT_EQ(parse_fault("all add=15% ramp")->add_share, 0.15);
  EXPECT_TRUE(parse_fault("rotating add=1ms tokens=yes")->tokens);
  EXPECT_EQ(parse_fault("rank=3 leave from=9")->what, What::kLeave);
}

TEST(Fault, WhatCannotBeReadIsNamed) {
  const std::pair<const char*, const char*> bad[] = {
      {"", "nowhere"},
      {"add=4ms", "nowhere"},
      {"rank=1", "add= is missing"},
      {"rank=x add=4ms", "rank=x is not a number"},
      {"rank=1 add=4", "add=4 is not a time"},
      {"rank=1 add=-4ms", "add=-4ms is not a time"},
      {"rank=1 add=nanms", "is not a time"},
      {"rank=1 node=2 add=4ms", "two places"},
      {"all rotating add=4ms", "two places"},
      {"rank=1 add=4ms phase=sync", "phase=sync is not a phase of one's own work"},
      {"rank=1 add=4ms from=9 to=3", "to= is before from="},
      {"rank=1 add=4ms slowly", "\"slowly\" is none of"},
      {"rank=1 add=4ms speed=3", "\"speed\" is none of"},
      {"all stuck", "need rank="},
      {"rotating add=4ms tokens=maybe", "tokens=maybe is not yes or no"},
  };
  for (const auto& [text, why] : bad) {
    const auto fault = parse_fault(text);
    ASSERT_FALSE(fault) << text;
    EXPECT_NE(fault.error().message.find(why), std::string::npos) << fault.error().message;
    EXPECT_FALSE(fault.error().hint.empty());
  }
}

TEST(Simulator, PhasesAddUpAndTheSeedDecides) {
  Options options;
  options.steps = 30;
  options.syncs = 4;
  options.faults.push_back(*parse_fault("rank=1 phase=checkpoint add=20ms"));
  const RunHistory a = simulate(options), b = simulate(options);
  for (size_t r = 0; r < a.ranks.size(); ++r)
    for (size_t i = 0; i < a.ranks[r].raw.size(); ++i) {
      const StepSample& step = a.ranks[r].raw[i];
      int64_t sum = 0;
      for (const int64_t ns : step.phase_ns) sum += ns;
      EXPECT_NEAR(static_cast<double>(sum), static_cast<double>(step.total_ns()), 10);
      EXPECT_EQ(step.syncs.size(), 4U);
      EXPECT_EQ(step.begin_ns, b.ranks[r].raw[i].begin_ns);
    }
  options.seed = 1;
  EXPECT_NE(simulate(options).ranks[0].raw[5].end_ns, a.ranks[0].raw[5].end_ns);
}

TEST(Simulator, FaultsOfRanksThatAreNotThereAreRefused) {
  Options options;
  options.faults.push_back(*parse_fault("rank=8 add=1ms"));
  EXPECT_FALSE(options.check());
  options.faults = {*parse_fault("node=1 add=1ms")};
  EXPECT_FALSE(options.check());
  options.faults = {*parse_fault("rank=7 add=1ms")};
  EXPECT_TRUE(options.check());
}

}  // namespace
}  // namespace stepscope::simulator
