#include "hub/convert.h"

#include <gtest/gtest.h>

#include "hub/endpoint.h"
#include "hub/fixture.h"
#include "hub/protocol.h"
#include "hub/tls.h"
#include "hub/token.h"

namespace stepscope::hub {
namespace {

TEST(Convert, AStepComesBackAsItWas) {
  fixture::Random random(4);
  RankHistory before, after;
  for (int i = 0; i < 200; ++i) {
    const StepSample step = fixture::some_step(random, 3, i, 1000 + i * 1'000'000'000LL);
    pb::Step sent, read;
    fill(step, sent);
    ASSERT_TRUE(read.ParseFromString(sent.SerializeAsString()));
    auto back = step_of(read);
    ASSERT_TRUE(back);
    back->rank = 3;
    before.raw.push_back(step);
    after.raw.push_back(*back);
  }
  EXPECT_EQ(fixture::text_of(before), fixture::text_of(after));
}

TEST(Convert, AMemorySampleComesBackAsItWas) {
  MemorySample m;
  m.mono_ns = 5;
  m.step = -1;
  m.worker_pss_bytes = 0;
  m.cpu_cores = 1.5;
  m.cpu_wait_share = 0.25;
  m.disk_wait_share = 0.5;
  m.cpu_steal_share = 0.125;
  m.minor_faults_per_s = 1e5;
  m.major_faults_per_s = 3;
  pb::Memory sent;
  fill(m, sent);
  const auto back = memory_of(sent);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->step, -1);
  EXPECT_EQ(back->worker_pss_bytes, 0);
  EXPECT_FALSE(back->rss_bytes);
  EXPECT_EQ(back->cpu_cores, 1.5);
  EXPECT_EQ(back->cpu_wait_share, 0.25);
  EXPECT_EQ(back->disk_wait_share, 0.5);
  EXPECT_EQ(back->cpu_steal_share, 0.125);
  EXPECT_EQ(back->minor_faults_per_s, 1e5);
  EXPECT_EQ(back->major_faults_per_s, 3);
}

TEST(Convert, PhasesOfAStrangerAddUp) {
  pb::Step sent;
  sent.set_total_ns(100);
  sent.add_phase_ns(30);
  const auto step = step_of(sent);
  ASSERT_TRUE(step);
  EXPECT_EQ((*step)[Phase::kOther], 70);
  sent.add_phase_ns(71);
  EXPECT_FALSE(step_of(sent));
}

TEST(Convert, NamesCannotDriveATerminal) {
  pb::Step sent;
  sent.set_total_ns(5);
  pb::UserPhase& phase = *sent.add_user_phases();
  phase.set_name("\x1b[31mred" + std::string(500, 'x'));
  const auto step = step_of(sent);
  ASSERT_TRUE(step);
  EXPECT_LE(step->user_phase_ns[0].first.size(), kMaxName);
  EXPECT_EQ(step->user_phase_ns[0].first.find('\x1b'), std::string::npos);
}

TEST(Versions, TheNewestThatBothSpeak) {
  EXPECT_EQ(common_version({1, 3}, {2, 5}), 3u);
  EXPECT_EQ(common_version({2, 2}, {1, 2}), 2u);
  EXPECT_FALSE(common_version({1, 1}, {2, 3}));
  EXPECT_FALSE(common_version({1, 1}, {0, 0}));
}

TEST(Endpoint, Parses) {
  EXPECT_EQ(url_of(*parse_url("https://head")), "https://head:7077");
  EXPECT_EQ(url_of(*parse_url("http://[::1]:80/")), "http://[::1]:80");
  for (const char* bad : {"head:7077", "ftp://x", "http://", "http://a:b", "http://a:70000",
                          "http://user@host:1", "http://a b", "https://a:0"})
    EXPECT_FALSE(parse_url(bad)) << bad;
  EXPECT_EQ(parse_listen("0.0.0.0:7077")->port, 7077);
  EXPECT_EQ(parse_listen("[::]:1")->host, "::");
  EXPECT_FALSE(parse_listen("7077"));
  EXPECT_FALSE(parse_listen(":7077"));
}

TEST(Token, ProofsDifferWithEveryPart) {
  const Token token{"0123456789abcdef"}, other{"0123456789abcdeg"};
  const std::string a(kNonceBytes, 'a'), b(kNonceBytes, 'b');
  const std::string mac = proof(token, Speaker::kNode, a, b, 1);
  EXPECT_EQ(mac.size(), 32u);
  EXPECT_TRUE(equal_in_constant_time(mac, proof(token, Speaker::kNode, a, b, 1)));
  for (const std::string& different :
       {proof(other, Speaker::kNode, a, b, 1), proof(token, Speaker::kHub, a, b, 1),
        proof(token, Speaker::kNode, b, a, 1), proof(token, Speaker::kNode, a, b, 2),
        std::string()})
    EXPECT_FALSE(equal_in_constant_time(mac, different));
  EXPECT_FALSE(equal_in_constant_time("", ""));
}

TEST(Pin, Parses) {
  const std::string pin(64, 'a');
  EXPECT_EQ(*parse_pin("sha256:" + pin), pin);
  std::string colons;
  for (int i = 0; i < 32; ++i) colons += i == 0 ? "AA" : ":AA";
  EXPECT_EQ(*parse_pin(colons), pin);
  EXPECT_FALSE(parse_pin("abc"));
  EXPECT_FALSE(parse_pin(pin + "a"));
  EXPECT_FALSE(parse_pin(std::string(64, 'g')));
}

}  // namespace
}  // namespace stepscope::hub
