#include "hub/job.h"

#include <gtest/gtest.h>

#include <memory>

#include "hub/convert.h"
#include "hub/fixture.h"

namespace stepscope::hub {
namespace {

using fixture::Node;
using fixture::Random;
using fixture::text_of;

constexpr int64_t kSecond = 1'000'000'000;

// The connection of a node to a job, without a network.
struct Wire {
  Node& node;
  Job& job;
  size_t number;
  Delta delta;
  Wire(Node& its_node, Job& its_job, int64_t now_ns)
      : node(its_node), job(its_job), number(*job.join(node.join(), now_ns)) {
    delta.reset(job.have(number));
  }
  // Messages, at most so many; those beyond are lost with the connection.
  void send(int64_t now_ns, int most = 1 << 20) {
    for (bool state = true; most > 0; --most, state = false) {
      const Delta::Next next = delta.next(node.run, state);
      if (next.empty) return;
      pb::ToHub read;
      ASSERT_TRUE(read.ParseFromString(next.message.SerializeAsString()));
      const auto taken = job.update(number, read.update(), now_ns);
      ASSERT_TRUE(taken) << taken.error().message;
      if (taken->send_again) delta.reset(job.have(number));
      if (!next.more && !taken->send_again) return;
    }
  }
};

void expect_same_ranks(const Job& job, const std::vector<const Node*>& nodes) {
  size_t count = 0;
  for (const Node* node : nodes)
    for (const RankHistory& rank : node->run.ranks) {
      const auto& ranks = job.run().ranks;
      const auto found = std::find_if(ranks.begin(), ranks.end(),
                                      [&](const RankHistory& r) { return r.rank == rank.rank; });
      ASSERT_NE(found, ranks.end());
      EXPECT_EQ(text_of(*found), text_of(rank));
      ++count;
    }
  EXPECT_EQ(job.run().ranks.size(), count);
  EXPECT_EQ(job.lost_steps(), 0);
}

TEST(Job, HasWhatItsNodesHave) {
  Node a(1, "a", "i1", 0, 2, 4), b(2, "b", "i2", 2, 2, 4);
  a.make_steps(50);
  b.make_steps(40);
  Job job({});
  Wire(a, job, 0).send(0);
  Wire(b, job, 0).send(0);
  expect_same_ranks(job, {&a, &b});
  ASSERT_EQ(job.run().nodes.size(), 2u);
  EXPECT_EQ(job.run().nodes[1].cpu_cores.count, b.run.nodes[0].cpu_cores.count);
  EXPECT_TRUE(job.run().ranks[0].doing->alive);
}

// Connections lost at any message, hubs killed and read from their pieces, agents that send all again.
TEST(Job, AnyOrderOfDisconnectsGivesTheSameHistory) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    std::vector<std::unique_ptr<Node>> nodes;
    for (int i = 0; i < 3; ++i)
      nodes.push_back(std::make_unique<Node>(seed * 7 + static_cast<uint64_t>(i), "n",
                                             "i" + std::to_string(i), i * 2, 2, 6));
    auto job = std::make_unique<Job>(RunHistory{});
    std::vector<std::unique_ptr<Wire>> wires(3);
    int64_t now = 0;
    for (int round = 0; round < 40; ++round) {
      now += kSecond;
      const auto i = static_cast<size_t>(random.number(2));
      nodes[i]->make_steps(random.number(60));
      if (random.number(5) == 0) {  // the hub is killed: what was committed is all it has
        RunHistory run = job->run();
        for (RankHistory& rank : run.ranks) {  // as run.db gives it
          rank.outside_ns = 0;
          rank.unrolled_steps = -1;
          rank.doing.reset();
        }
        const auto stored = job->stored();
        job = std::make_unique<Job>(std::move(run), stored, now);
        wires = std::vector<std::unique_ptr<Wire>>(3);
      }
      if (!wires[i] || random.number(3) == 0) {
        if (wires[i]) job->lost(wires[i]->number, now);
        wires[i] = std::make_unique<Wire>(*nodes[i], *job, now);
      }
      wires[i]->send(now, random.coin() ? 1 : 1000);
    }
    for (size_t i = 0; i < 3; ++i) Wire(*nodes[i], *job, now).send(now);
    for (size_t i = 0; i < 3; ++i)
      for (RankHistory& rank : nodes[i]->run.ranks) rank.node = i == 0 ? "n" : rank.node;
    for (RankHistory& rank : job->run().ranks) rank.node = "n";
    expect_same_ranks(*job, {nodes[0].get(), nodes[1].get(), nodes[2].get()});
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

TEST(Job, WhatTheNodeHasNoLongerIsCountedAndSaid) {
  Node a(1, "a", "i1", 0, 1, 1);
  a.make_steps(100);
  Job job({});
  Wire(a, job, 0).send(0);
  a.make_steps(static_cast<int64_t>(RankHistory::kMaxRaw) + 300);
  Wire(a, job, 0).send(0);
  EXPECT_EQ(job.lost_steps(), 300);
  EXPECT_EQ(job.run().ranks[0].steps, a.run.ranks[0].steps);  // counted
  EXPECT_EQ(text_of(job.run().ranks[0]).substr(0, 120), text_of(a.run.ranks[0]).substr(0, 120));
  job.refresh(0);
  ASSERT_EQ(job.run().notices.size(), 1u);
  EXPECT_NE(job.run().notices[0].find("300 steps of node a did not reach the hub"),
            std::string::npos);
}

TEST(Job, R14EqualHostNamesAreNotOneNode) {
  Node a(1, "host", "i1", 0, 1, 2), b(2, "host", "i2", 1, 1, 2);
  a.make_steps(3);
  b.make_steps(3);
  Job job({});
  Wire(a, job, 0).send(0);
  Wire(b, job, 0).send(0);
  ASSERT_EQ(job.run().nodes.size(), 2u);
  EXPECT_EQ(job.run().nodes[0].node, "host");
  EXPECT_EQ(job.run().nodes[1].node, "host#2");
  EXPECT_EQ(job.run().ranks[1].node, "host#2");
  Wire(b, job, 0).send(0);  // a restarted agent is no third node
  EXPECT_EQ(job.run().nodes.size(), 2u);
}

TEST(Job, ARankThatMovesToAnotherNodeGoesOn) {
  Node a(1, "a", "i1", 0, 1, 1), b(2, "b", "i2", 0, 1, 1);
  a.make_steps(30);
  b.make_steps(20);
  Job job({});
  Wire wire_a(a, job, 0);
  wire_a.send(0);
  Wire wire_b(b, job, kSecond);
  wire_b.send(kSecond);  // a still has it
  EXPECT_EQ(job.run().ranks[0].node, "a");
  job.refresh(kSecond);
  EXPECT_FALSE(job.run().notices.empty());
  job.lost(wire_a.number, 2 * kSecond);
  wire_b.send(20 * kSecond);
  const RankHistory& rank = job.run().ranks[0];
  EXPECT_EQ(rank.node, "b");
  EXPECT_EQ(rank.attempt, 1);
  EXPECT_EQ(rank.steps + rank.failed_steps, 50);
  EXPECT_EQ(rank.raw.size(), 50u);
  for (size_t i = 1; i < rank.raw.size(); ++i)
    EXPECT_GE(rank.raw[i].begin_ns, rank.raw[i - 1].end_ns) << i;
  a.make_steps(10);  // and back
  job.lost(wire_b.number, 30 * kSecond);
  Wire(a, job, 40 * kSecond).send(40 * kSecond);
  EXPECT_EQ(rank.steps + rank.failed_steps, 60);
  EXPECT_EQ(rank.raw.size(), 60u);
  EXPECT_EQ(job.lost_steps(), 0);
}

TEST(Job, ALaterAttemptElsewhereTakesTheRank) {
  Node a(1, "a", "i1", 0, 1, 1), b(2, "b", "i2", 0, 1, 1);
  a.make_steps(5);
  b.make_steps(5);
  b.run.ranks[0].attempt = 1;
  Job job({});
  Wire(a, job, 0).send(0);
  Wire(b, job, 0).send(0);
  EXPECT_EQ(job.run().ranks[0].node, "b");
  EXPECT_EQ(job.run().ranks[0].attempt, 1);
}

TEST(Job, AnAgentThatLostItsHistoryAddsToTheOldOne) {
  Node a(1, "a", "i1", 0, 1, 1);
  a.make_steps(10);
  Job job({});
  Wire(a, job, 0).send(0);
  const int64_t before = job.run().ranks[0].records_written;
  a.make_steps(5);
  RankHistory fresh;
  fresh.world_size = 1;
  fresh.pid = a.run.ranks[0].pid;
  const auto newest = a.run.ranks[0].raw;
  for (size_t i = 10; i < 15; ++i) fresh.add(newest[i], a.run.settings);
  fresh.records_written = 7;
  a.run.ranks[0] = fresh;
  Wire(a, job, 0).send(0);
  EXPECT_EQ(job.run().ranks[0].steps + job.run().ranks[0].failed_steps, 15);
  EXPECT_EQ(job.run().ranks[0].records_written, before + 7);
  EXPECT_EQ(job.lost_steps(), 0);
}

TEST(Job, IsOverWhenAllSaidGoodbyeOrVanished) {
  Node a(1, "a", "i1", 0, 1, 2), b(2, "b", "i2", 1, 1, 2);
  a.make_steps(5);
  b.make_steps(5);
  Job job({});
  EXPECT_FALSE(job.is_over(0));
  Wire wire_a(a, job, 0), wire_b(b, job, 0);
  wire_a.send(0);
  wire_b.send(0);
  pb::Goodbye goodbye;
  goodbye.set_exit_code(0);
  job.goodbye(wire_a.number, goodbye, 0);
  EXPECT_FALSE(job.is_over(100 * kSecond));
  job.lost(wire_b.number, 100 * kSecond);
  EXPECT_FALSE(job.is_over(159 * kSecond));
  EXPECT_TRUE(job.is_over(161 * kSecond));
  job.refresh(161 * kSecond);
  EXPECT_FALSE(job.run().exit_code);
  ASSERT_EQ(job.run().notices.size(), 1u);
  EXPECT_EQ(job.run().notices[0],
            "node b vanished without a goodbye: what it sent until then is here");
  Wire back(b, job, 170 * kSecond);
  EXPECT_FALSE(job.is_over(170 * kSecond));
  goodbye.set_exit_code(3);
  job.goodbye(back.number, goodbye, 171 * kSecond);
  EXPECT_TRUE(job.is_over(171 * kSecond));
  job.refresh(171 * kSecond);
  EXPECT_EQ(job.run().exit_code, 3);
  EXPECT_TRUE(job.run().notices.empty());
}

TEST(Job, WaitsAWhileForRanksThatWereNeverSeen) {
  Node a(1, "a", "i1", 0, 1, 2);
  a.make_steps(5);
  Job job({});
  Wire wire(a, job, 0);
  wire.send(0);
  job.goodbye(wire.number, {}, kSecond);
  EXPECT_FALSE(job.is_over(2 * kSecond));
  EXPECT_TRUE(job.is_over(12 * kSecond));
}

TEST(Job, StaysSmallWithManyRanks) {  // R16
  Job job({});
  Node first(1, "n", "i", 0, 1, 1);
  first.make_steps(1);
  std::vector<std::unique_ptr<Node>> nodes;
  for (int i = 0; i < 40; ++i) {
    nodes.push_back(std::make_unique<Node>(1, "n", std::to_string(i), i * 200, 200, 8000));
    nodes.back()->make_steps(2);
    Wire(*nodes.back(), job, 0).send(0);
  }
  nodes[39]->make_steps(1500);
  Wire(*nodes[39], job, 0).send(0);
  const RankHistory& rank = job.run().ranks.back();
  EXPECT_EQ(rank.raw.size(), 120u);
  EXPECT_LE(rank.rollups[0].size(), 20u);
  int64_t steady = 0;
  for (const StepBlock& block : rank.steady_blocks()) steady += block.count;
  EXPECT_GT(steady, 120);  // the rollups still tell of the rest
  EXPECT_EQ(job.lost_steps(), 0);
}

TEST(Job, WhatCannotBeTrueIsRefused) {
  Node a(1, "a", "i1", 0, 1, 1);
  a.make_steps(1);
  Delta delta;
  const pb::Update good = delta.next(a.run, true).message.update();
  const auto refused = [&](auto spoil) {
    Job job({});
    const size_t node = *job.join(a.join(), 0);
    pb::Update update = good;
    spoil(*update.mutable_ranks(0));
    return !job.update(node, update, 0);
  };
  EXPECT_FALSE(refused([](pb::RankUpdate&) {}));
  EXPECT_TRUE(refused([](pb::RankUpdate& r) { r.set_rank(-1); }));
  EXPECT_TRUE(refused([](pb::RankUpdate& r) { r.set_rank(1'000'000); }));
  EXPECT_TRUE(refused([](pb::RankUpdate& r) { r.mutable_steps(0)->set_total_ns(-1); }));
  EXPECT_TRUE(refused([](pb::RankUpdate& r) { r.mutable_steps(0)->set_begin_ns(INT64_MAX); }));
  EXPECT_TRUE(refused([](pb::RankUpdate& r) { r.mutable_steps(0)->set_phase_ns(0, INT64_MAX); }));
  EXPECT_TRUE(refused([](pb::RankUpdate& r) { r.mutable_steps(0)->add_phase_ns(0); }));
  EXPECT_TRUE(refused([](pb::RankUpdate& r) {
    for (size_t i = 0; i <= StepSample::kMaxSyncs; ++i) r.mutable_steps(0)->add_syncs();
  }));
  EXPECT_TRUE(refused([](pb::RankUpdate& r) {
    pb::Sync& sync = *r.mutable_steps(0)->add_syncs();
    sync.set_ready_ns(5);
    sync.set_leave_ns(4);
  }));
  EXPECT_TRUE(refused([](pb::RankUpdate& r) { r.add_memory()->set_mono_ns(INT64_MAX); }));
}

}  // namespace
}  // namespace stepscope::hub
