// The comparison of ranks on runs whose truth is known: the worked example, clocks, unseen ranks, groups, many syncs a
// step, causes, and the cases R01 to R15.
#include <gtest/gtest.h>

#include "engine/stuck.h"
#include "simulator/trials.h"

namespace stepscope::simulator {
namespace {

constexpr int64_t kMs = 1'000'000;

const Finding* find(const std::vector<Finding>& findings, const std::string& code) {
  const auto at = std::find_if(findings.begin(), findings.end(),
                               [&](const Finding& f) { return f.code == code; });
  return at == findings.end() ? nullptr : &*at;
}

double value(const Finding& finding, const std::string& name) {
  for (const Evidence& e : finding.evidence)
    if (e.name == name) return e.value;
  ADD_FAILURE() << finding.code << " has no " << name;
  return 0;
}

bool has(const Finding& finding, const std::string& name) {
  return std::any_of(finding.evidence.begin(), finding.evidence.end(),
                     [&](const Evidence& e) { return e.name == name; });
}

std::vector<Finding> judged(const Options& options) {
  RunHistory run = simulate(options);
  return findings_of(run);
}

// Ranks that are ready these ms after the last sync, and leave at `leave`, each on a clock of its own.
RunHistory exact(const std::vector<int64_t>& ready_ms, int64_t leave_ms, int steps) {
  RunHistory run;
  for (size_t r = 0; r < ready_ms.size(); ++r) {
    RankHistory& rank = run.ranks.emplace_back();
    rank.rank = static_cast<int32_t>(r);
    rank.world_size = static_cast<int32_t>(ready_ms.size());
    rank.node = "n0";
    for (int s = 0; s < steps; ++s) {
      StepSample step;
      step.rank = rank.rank;
      step.step = s;
      step.begin_ns = static_cast<int64_t>(r) * 3'600'000 * kMs + s * leave_ms * kMs;
      step.end_ns = step.begin_ns + leave_ms * kMs;
      step[Phase::kBackward] = ready_ms[r] * kMs;
      step[Phase::kSync] = (leave_ms - ready_ms[r]) * kMs;
      step.syncs = {{7, static_cast<uint32_t>(s), static_cast<uint32_t>(ready_ms.size()),
                     step.begin_ns + ready_ms[r] * kMs, step.end_ns, true}};
      (void)rank.add(std::move(step), run.settings);
    }
  }
  return run;
}

TEST(Compare, WorkedExampleOfTheDiagnosis) {
  RunHistory run = exact({100, 102, 150, 101}, 155, 60);
  const std::vector<Finding> findings = findings_of(run);
  const Comparison& c = run.comparison;
  EXPECT_EQ(c.steps, 50);
  EXPECT_DOUBLE_EQ(c.time_ns, 50 * 155e6);
  EXPECT_DOUBLE_EQ(c.cost_ns, 50 * 49e6);
  ASSERT_FALSE(c.blocks.empty());
  EXPECT_DOUBLE_EQ(c.blocks.front().transfer_ns, 5e6);
  const Finding& verdict = findings.front();
  EXPECT_EQ(verdict.code, "STRAGGLER");
  EXPECT_EQ(verdict.severity, Severity::kCritical);
  EXPECT_EQ(verdict.rank, 2);
  EXPECT_EQ(verdict.phase, "backward");
  EXPECT_EQ(verdict.cause, "backward");
  EXPECT_NEAR(*verdict.cost_ms_per_step, 48, 1e-6);
  EXPECT_NEAR(*verdict.predicted_saving, 48.0 / 155, 1e-9);
  EXPECT_EQ(*verdict.first_step, 10);
  EXPECT_NEAR(value(verdict, "slowdown"), 155.0 / 106, 1e-9);
  EXPECT_NEAR(value(verdict, "waste"), 49.0 / 155, 1e-9);
  EXPECT_NEAR(value(verdict, "rank_seconds"), 49.0 / 155 * 4 * 50 * 0.155, 1e-9);
  EXPECT_EQ(find(findings, "SYNC_BOUND"), nullptr);
  EXPECT_EQ(find(findings, "JITTER"), nullptr);
}

// R15
TEST(Compare, ClocksSetApartAndDriftingChangeNothing) {
  Options options = with(11, 16, 250, "rank=5 phase=input add=20% from=120");
  options.clock_hours = options.clock_ppm = 0;
  const std::vector<Finding> straight = judged(options);
  RunHistory run = simulate(options);
  for (RankHistory& rank : run.ranks) {
    const double drift = 1 + 200e-6 * (rank.rank % 2 == 0 ? 1 : -1);
    const int64_t apart = rank.rank * 3'600'000 * kMs;
    const auto move = [&](int64_t& ns) {
      ns = static_cast<int64_t>(static_cast<double>(ns) * drift) + apart;
    };
    for (StepSample& step : rank.raw) {
      move(step.begin_ns);
      move(step.end_ns);
      for (SyncPoint& sync : step.syncs) {
        move(sync.ready_ns);
        move(sync.leave_ns);
      }
    }
  }
  const std::vector<Finding> skewed = findings_of(run);
  const Finding *a = find(straight, "STRAGGLER"), *b = find(skewed, "STRAGGLER");
  ASSERT_NE(a, nullptr);
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(a->rank, b->rank);
  EXPECT_EQ(a->phase, b->phase);
  EXPECT_EQ(a->first_step, b->first_step);
  EXPECT_NEAR(*a->cost_ms_per_step, *b->cost_ms_per_step, 0.1);
  EXPECT_EQ(straight.size(), skewed.size());
}

// Ranks 8-15 run where no agent reports: nobody is accused, nor the wire.
TEST(Compare, UnseenRanksAccuseNoOne) {
  RunHistory run = simulate(with(2, 16, 200, "rank=3 add=30%"));
  run.ranks.resize(8);
  const std::vector<Finding> findings = findings_of(run);
  EXPECT_EQ(run.comparison.steps, 0);
  EXPECT_EQ(find(findings, "STRAGGLER"), nullptr);
  EXPECT_EQ(find(findings, "SYNC_BOUND"), nullptr);
  EXPECT_EQ(find(findings, "NO_BOTTLENECK"), nullptr);
  const Finding* gap = find(findings, "INSUFFICIENT_DATA");
  ASSERT_NE(gap, nullptr);
  EXPECT_NE(gap->not_measured.front().find("for ranks that no agent reports (8-15)"),
            std::string::npos);
  EXPECT_NE(gap->advice.front().text.find("--hub"), std::string::npos);
}

TEST(Compare, DroppedRecordsAreLeftOut) {
  RunHistory run = simulate(with(2, 8, 200, "rank=3 add=20%"));
  for (size_t i = 40; i < 60; ++i) {
    run.ranks[2].raw[i].incomplete = true;
    run.ranks[2].raw[i].syncs.clear();
  }
  const std::vector<Finding> findings = findings_of(run);
  EXPECT_EQ(run.comparison.steps,
            190 - 21);  // the step after them does not know its sync point before
  EXPECT_EQ(run.comparison.episodes.size(), 1U);
  EXPECT_EQ(find(findings, "STRAGGLER")->rank, 3);
}

TEST(Compare, RanksThatNumberTheirStepsOtherwiseAreJoinedBySyncPoint) {
  RunHistory run = simulate(with(2, 8, 200, "rank=3 add=20% from=100"));
  for (StepSample& step : run.ranks[3].raw) step.step += 5;
  (void)findings_of(run);
  ASSERT_EQ(run.comparison.episodes.size(), 1U);
  EXPECT_EQ(run.comparison.episodes.front().rank, 3);
  EXPECT_NEAR(static_cast<double>(run.comparison.episodes.front().first_step), 100, 3);
}

// Of two ranks in turn, each at once after the other and by another amount: every one of them is kept.
TEST(Compare, FaultsThatFollowEachOtherAreEachAnEpisode) {
  Options options = with(5, 2, 450, "");
  options.noise = 0.005;
  const std::vector<int> percents = {15, 15, 15, 150, 15, 15, 30, 15};
  for (size_t i = 0; i < percents.size(); ++i)
    options.faults.push_back(*parse_fault(
        "rank=" + std::to_string((i + 1) % 2) + " add=" + std::to_string(percents[i]) +
        "% from=" + std::to_string(45 * (i + 1)) + " to=" + std::to_string(45 * (i + 1) + 44)));
  RunHistory run = simulate(options);
  (void)findings_of(run);
  ASSERT_EQ(run.comparison.episodes.size(), percents.size());
  for (size_t i = 0; i < percents.size(); ++i) {
    const Episode& episode = run.comparison.episodes[i];
    EXPECT_EQ(episode.rank, static_cast<int32_t>((i + 1) % 2));
    EXPECT_NEAR(static_cast<double>(episode.first_step), 45.0 * static_cast<double>(i + 1), 3);
    EXPECT_NEAR(static_cast<double>(episode.last_step), 45.0 * static_cast<double>(i + 1) + 44, 3);
    EXPECT_TRUE(episode.ended);
  }
}

// A hub that comes back hears one node's steps before the others': they are judged once all are there.
TEST(Compare, StepsOfANodeThatIsHeardFirstAreJudgedLater) {
  const RunHistory whole = simulate(with(4, 16, 200, "rank=11 phase=input add=25% from=100"));
  RunHistory run = whole;
  run.live = true;
  std::erase_if(run.ranks, [](const RankHistory& rank) { return rank.node != "node1"; });
  ASSERT_EQ(run.ranks.size(), 8U);
  run.comparison = engine::compare_ranks(run);
  EXPECT_EQ(run.comparison.steps, 0);
  run.ranks = whole.ranks;
  run.comparison = engine::compare_ranks(run);
  RunHistory straight = whole;
  straight.comparison = engine::compare_ranks(straight);
  EXPECT_EQ(run.comparison, straight.comparison);
  ASSERT_EQ(run.comparison.episodes.size(), 1U);
  EXPECT_EQ(run.comparison.episodes.front().rank, 11);
}

TEST(Compare, TransferThatAllWaitForIsSyncBound) {
  Options options = with(3, 8, 200, "");
  options.transfer_ms = 40;
  const std::vector<Finding> findings = judged(options);
  EXPECT_EQ(findings.front().code, "SYNC_BOUND");
  EXPECT_NEAR(*findings.front().share, 40.0 / 147, 0.02);
}

TEST(Compare, TwoKindsOfHardwareAreGroups) {
  Options options = with(3, 16, 200, "");
  options.nodes = 1;
  for (int r : {2, 3, 6, 7, 10, 11})
    options.faults.push_back(*parse_fault("rank=" + std::to_string(r) + " add=25%"));
  const std::vector<Finding> findings = judged(options);
  const Finding& verdict = findings.front();
  EXPECT_EQ(verdict.code, "IMBALANCE");
  EXPECT_EQ(verdict.pattern, "groups");
  EXPECT_EQ(value(verdict, "slow_ranks"), 6);
  EXPECT_EQ(find(findings, "STRAGGLER"), nullptr);
}

// FSDP: many unlike syncs a step, the fault before one of them.
TEST(Compare, AFaultBeforeOneOfManySyncsOfAStep) {
  for (const char* phase : {"input", "backward"}) {
    Options options = with(3, 8, 150, std::string("rank=6 add=20% phase=") + phase);
    options.syncs = 24;
    const std::vector<Finding> findings = judged(options);
    ASSERT_EQ(findings.front().code, "STRAGGLER");
    EXPECT_EQ(findings.front().rank, 6);
    EXPECT_EQ(findings.front().phase, phase);
  }
}

TEST(Compare, ABusyNeighbourIsContention) {
  RunHistory run = simulate(with(3, 4, 200, "rank=1 phase=forward add=25%"));
  for (RankHistory& rank : run.ranks)
    for (int64_t step = 0; step < 200; step += 10) {
      MemorySample sample;
      sample.step = step;
      sample.cpu_wait_share = rank.rank == 1 ? 0.3 : 0.01;
      rank.add(sample);
    }
  const std::vector<Finding> findings = findings_of(run);
  EXPECT_EQ(findings.front().code, "STRAGGLER");
  EXPECT_EQ(findings.front().cause, "CONTENTION");
  EXPECT_NEAR(value(findings.front(), "cpu_wait_share"), 0.3, 1e-9);
}

// Each reading that only the slow rank shows names the cause, and one that all show does not.
TEST(Compare, WhatItsProcessShowsIsTheCause) {
  struct Case {
    const char* cause;
    std::optional<double> MemorySample::* reading;
    double slow, usual;
  };
  for (const Case& c : {Case{"cpu_steal", &MemorySample::cpu_steal_share, 0.3, 0.0},
                        Case{"disk_wait", &MemorySample::disk_wait_share, 0.3, 0.01},
                        Case{"page_faults", &MemorySample::major_faults_per_s, 3000, 10},
                        Case{"page_faults", &MemorySample::minor_faults_per_s, 300'000, 4000}})
    for (const bool alone : {true, false}) {
      RunHistory run = simulate(with(3, 4, 200, "rank=1 phase=forward add=25%"));
      for (RankHistory& rank : run.ranks)
        for (int64_t step = 0; step < 200; step += 10) {
          MemorySample sample;
          sample.step = step;
          sample.*c.reading = rank.rank == 1 || !alone ? c.slow : c.usual;
          rank.add(sample);
        }
      const Finding verdict = findings_of(run).front();
      ASSERT_EQ(verdict.code, "STRAGGLER") << c.cause;
      EXPECT_EQ(verdict.rank, 1);
      EXPECT_EQ(verdict.phase, "forward");
      EXPECT_EQ(verdict.cause, alone ? c.cause : "forward");
      EXPECT_FALSE(verdict.advice.empty());
      const auto& missing = verdict.not_measured;  // the readings that nobody has
      EXPECT_NE(std::find(missing.begin(), missing.end(), "waiting for a core"), missing.end());
    }
}

// A little of it on the slow rank alone explains nothing of an excess of a fifth.
TEST(Compare, AReadingThatExplainsLittleIsNotTheCause) {
  RunHistory run = simulate(with(3, 4, 200, "rank=1 phase=forward add=25%"));
  for (RankHistory& rank : run.ranks)
    for (int64_t step = 0; step < 200; step += 10) {
      MemorySample sample;
      sample.step = step;
      sample.cpu_wait_share = rank.rank == 1 ? 0.06 : 0.0;
      rank.add(sample);
    }
  EXPECT_EQ(findings_of(run).front().cause, "forward");
}

TEST(Compare, ANodeWhoseQuotaRunsOutIsThrottled) {
  Options options = with(3, 8, 200, "node=1 phase=forward add=25%");
  options.nodes = 2;
  for (const double elsewhere : {0.0, 0.5}) {
    RunHistory run = simulate(options);
    for (RankHistory& rank : run.ranks)
      for (int64_t step = 0; step < 200; step += 10) {
        MemorySample sample;
        sample.step = step;
        sample.cpu_wait_share = rank.node == "node1" ? 0.3 : 0.01;
        rank.add(sample);
      }
    for (NodeHistory& node : run.nodes)
      node.cpu_throttled_share.add(node.node == "node1" ? 0.5 : elsewhere);
    const Finding verdict = findings_of(run).front();
    EXPECT_EQ(verdict.code, "STRAGGLER");
    EXPECT_EQ(verdict.node, "node1");
    EXPECT_EQ(verdict.cause, elsewhere > 0 ? "CONTENTION" : "throttled");
  }
}

TEST(Compare, AllPhasesOfARankPointAtItsHost) {  // R06
  RunHistory run = simulate([] {
    Options options = with(3, 8, 200, "");
    for (const char* fault : {"rank=4 phase=forward add=6%", "rank=4 phase=backward add=10%",
                              "rank=4 phase=optimizer add=2%"})
      options.faults.push_back(*parse_fault(fault));
    return options;
  }());
  const std::vector<Finding> findings = findings_of(run);
  const Finding* slow = find(findings, "STRAGGLER");
  ASSERT_NE(slow, nullptr);
  EXPECT_EQ(slow->rank, 4);
  EXPECT_EQ(slow->cause, "device_or_host");
  EXPECT_NE(slow->advice.front().text.find("exclude the host"), std::string::npos);
}

TEST(Compare, EndedEpisodesStayAndAreOrderedByTheRunsGain) {
  const std::vector<Finding> findings =
      judged(with(3, 8, 600, "rank=4 phase=input add=60% from=100 to=140"));
  const Finding* slow = find(findings, "STRAGGLER");
  ASSERT_NE(slow, nullptr);
  EXPECT_TRUE(slow->ended);
  EXPECT_NEAR(static_cast<double>(*slow->last_step), 140, 3);
  EXPECT_GT(*slow->predicted_saving, 5 * value(*slow, "run_gain"));
}

// R01 R02: the delay shows on every rank's wall time; the one who makes it is named, and is not told twice.
TEST(Cases, DelayInBackwardOrInputOfOneRank) {
  for (const char* phase : {"backward", "input"}) {
    const std::vector<Finding> findings =
        judged(with(5, 4, 200, std::string("rank=2 add=40ms phase=") + phase));
    EXPECT_EQ(findings.front().code, "STRAGGLER");
    EXPECT_EQ(findings.front().rank, 2);
    EXPECT_EQ(findings.front().phase, phase);
    EXPECT_EQ(find(findings, "INPUT_BOUND"), nullptr);
    EXPECT_EQ(find(findings, "SYNC_BOUND"), nullptr);
  }
}

// R03: same mean, three stories.
TEST(Cases, AlwaysOneRankOrRotatingOrOneStall) {
  const auto always = judged(with(5, 4, 200, "rank=1 add=20ms"));
  EXPECT_EQ(always.front().code, "STRAGGLER");
  const auto turns = judged(with(5, 4, 200, "rotating add=25ms"));
  const Finding* jitter = find(turns, "JITTER");
  ASSERT_NE(jitter, nullptr);
  EXPECT_FALSE(jitter->rank);
  EXPECT_EQ(find(turns, "STRAGGLER"), nullptr);
  const auto stall = judged(with(5, 4, 200, "spike add=4s every=200 rank=3 phase=other"));
  const Finding* spikes = find(stall, "SPIKES");
  ASSERT_NE(spikes, nullptr);
  EXPECT_TRUE(has(*spikes, "spike_at_step_101") || has(*spikes, "spike_at_step_100"));
  EXPECT_NE(spikes->title.find("rank 3 other"), std::string::npos);
}

// R05: rank 0 saves, the others wait.
TEST(Cases, CheckpointOfRankZero) {
  const auto each = judged(with(5, 4, 200, "rank=0 add=20ms phase=checkpoint"));
  EXPECT_EQ(each.front().code, "STRAGGLER");
  EXPECT_EQ(each.front().rank, 0);
  EXPECT_EQ(each.front().cause, "checkpoint");
  EXPECT_EQ(find(each, "OVERHEAD"), nullptr);
  const auto rare = judged(with(5, 4, 200, "spike rank=0 add=200ms every=10 phase=checkpoint"));
  const Finding* jitter = find(rare, "JITTER");
  ASSERT_NE(jitter, nullptr);
  EXPECT_EQ(jitter->rank, 0);
  EXPECT_EQ(jitter->phase, "checkpoint");
  EXPECT_NE(jitter->advice.front().text.find("async_save"), std::string::npos);
}

// R07: pauses at random ranks.
TEST(Cases, GarbageCollectionAtRandomRanks) {
  const auto findings = judged(with(5, 8, 300, "spike add=150ms every=7 phase=gc"));
  const Finding* jitter = find(findings, "JITTER");
  ASSERT_NE(jitter, nullptr);
  EXPECT_EQ(jitter->phase, "gc");
  EXPECT_NE(jitter->title.find("heavy-tailed"), std::string::npos);
  EXPECT_NE(jitter->advice.front().text.find("gc.freeze()"), std::string::npos);
}

// R08: work follows tokens: data, not hardware.
TEST(Cases, VariableLength) {
  const auto findings = judged(with(5, 8, 200, "rotating add=30ms tokens=yes"));
  const Finding* imbalance = find(findings, "IMBALANCE");
  ASSERT_NE(imbalance, nullptr);
  EXPECT_EQ(imbalance->pattern, "rotating");
  EXPECT_NE(imbalance->advice.front().text.find("sampler"), std::string::npos);
  const auto always = judged(with(5, 8, 200, "rank=2 add=30ms tokens=yes"));
  EXPECT_EQ(always.front().code, "STRAGGLER");
  EXPECT_EQ(always.front().cause, "more_samples");
}

// R10: four transfers a step although one would do.
TEST(Cases, SyncOfEveryMicroStepIsCounted) {
  Options options = with(5, 4, 200, "");
  options.syncs = 4;
  options.transfer_ms = 60;
  RunHistory run = simulate(options);
  for (RankHistory& rank : run.ranks) rank.steady_backwards *= 4;
  const Finding verdict = findings_of(run).front();
  EXPECT_EQ(verdict.code, "SYNC_BOUND");
  EXPECT_EQ(value(verdict, "micro_steps"), 4);
  EXPECT_EQ(value(verdict, "syncs_per_step"), 4);
  EXPECT_NEAR(value(verdict, "no_sync_gain"), *verdict.share * 0.75, 1e-9);
  EXPECT_NE(verdict.advice.front().text.find("no_sync()"), std::string::npos);
}

// R17
TEST(Cases, WhichRankIsStuck) {
  RunHistory run = simulate(with(5, 8, 300, "rank=5 stuck phase=backward from=100"));
  const Finding verdict = findings_of(run).front();
  EXPECT_EQ(verdict.code, "STUCK");
  EXPECT_EQ(verdict.severity, Severity::kCritical);
  EXPECT_EQ(verdict.rank, 5);
  EXPECT_EQ(verdict.phase, "backward");
  EXPECT_NE(verdict.title.find("ranks 0-4, 6-7 wait"), std::string::npos);
  run.ranks[5].doing->phase = "checkpoint";  // allowed ten times as long
  run.ranks[5].doing->for_ns = 200'000 * kMs;
  EXPECT_NE(engine::diagnose(run).front().code, "STUCK");
  run.ranks[5].doing->for_ns = 400'000 * kMs;
  EXPECT_EQ(engine::diagnose(run).front().code, "STUCK");
  run.ranks[5].doing->alive = false;
  EXPECT_NE(engine::diagnose(run).front().title.find("the process of rank 5 has ended"),
            std::string::npos);
  run.ranks[2].doing->for_ns = 1000 * kMs;  // one that moves
  EXPECT_NE(engine::diagnose(run).front().code, "STUCK");
  run.live = false;
  EXPECT_NE(engine::diagnose(run).front().code, "STUCK");
}

// The groups of the ranks' sync points, all members of which are still: the others go on.
TEST(Cases, AGroupIsStuckWhileTheOthersGoOn) {
  constexpr uint64_t kLeft = 71, kRight = 72, kPair = 73;
  RunHistory run = simulate(with(5, 8, 300, "rank=5 stuck phase=backward from=100"));
  const auto give = [&](int32_t rank, uint64_t group, uint32_t members) {
    for (StepSample& step : run.ranks[static_cast<size_t>(rank)].raw)
      for (SyncPoint& sync : step.syncs) {
        sync.group = group;
        sync.members = members;
      }
  };
  for (int32_t r = 0; r < 8; ++r) give(r, r < 4 ? kLeft : kRight, 4);
  for (int32_t r = 0; r < 4; ++r) run.ranks[static_cast<size_t>(r)].doing->for_ns = 10 * kMs;
  const std::vector<Finding> findings = engine::diagnose(run);
  EXPECT_EQ(findings.front().code, "STUCK");
  EXPECT_EQ(findings.front().rank, 5);
  EXPECT_EQ(findings.front().phase, "backward");
  EXPECT_EQ(value(findings.front(), "stuck_ranks"), 4);
  EXPECT_NE(findings.front().title.find("ranks 4-7 have not moved for"), std::string::npos);
  EXPECT_NE(findings.front().title.find("ranks 4, 6-7 wait"), std::string::npos);
  EXPECT_EQ(engine::late_when_stuck(run), std::vector<int32_t>{5});

  RunHistory moves = run;  // one member goes on: it may yet come
  moves.ranks[6].doing->for_ns = 10 * kMs;
  EXPECT_NE(engine::diagnose(moves).front().code, "STUCK");
  RunHistory saves = run;  // known to take long
  saves.ranks[5].doing->phase = "checkpoint";
  saves.ranks[5].doing->for_ns = 200'000 * kMs;
  EXPECT_NE(engine::diagnose(saves).front().code, "STUCK");
  RunHistory unseen = run;  // the late one may be where no agent is
  for (int32_t r = 4; r < 8; ++r)
    for (StepSample& step : unseen.ranks[static_cast<size_t>(r)].raw)
      for (SyncPoint& sync : step.syncs) sync.members = 5;
  EXPECT_NE(engine::diagnose(unseen).front().code, "STUCK");

  run.ranks[0].doing->for_ns = run.ranks[1].doing->for_ns = 600'000 * kMs;
  run.ranks[0].doing->phase = "input";
  give(0, kPair, 2);
  give(1, kPair, 2);
  EXPECT_EQ(engine::late_when_stuck(run), (std::vector<int32_t>{0, 5}));  // two of them
  run.ranks[1].raw.back().syncs.front().group = kRight;                   // which share a rank: one
  EXPECT_EQ(engine::late_when_stuck(run), (std::vector<int32_t>{0, 5}));
  const auto all = engine::diagnose(run);
  EXPECT_EQ(std::count_if(all.begin(), all.end(),
                          [](const Finding& found) { return found.code == "STUCK"; }),
            1);
}

TEST(Cases, OneRankThatSlowsDown) {
  const auto change = judged(with(5, 1, 200, "all add=20% from=120 phase=input"));
  const Finding* slower = find(change, "SLOWED_DOWN");
  ASSERT_NE(slower, nullptr);
  EXPECT_EQ(slower->pattern, "change");
  EXPECT_EQ(slower->phase, "input");
  EXPECT_NEAR(static_cast<double>(*slower->first_step), 120, 2);
  EXPECT_FALSE(slower->ended);
  const auto back = judged(with(5, 1, 300, "all add=20% from=120 to=180"));
  ASSERT_NE(find(back, "SLOWED_DOWN"), nullptr);
  EXPECT_TRUE(find(back, "SLOWED_DOWN")->ended);
}

}  // namespace
}  // namespace stepscope::simulator
