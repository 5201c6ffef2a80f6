#include "model/comparison.h"

#include <gtest/gtest.h>

#include <random>

namespace stepscope {
namespace {

Comparison filled() {
  std::mt19937_64 random(3);
  const auto real = [&] { return std::uniform_real_distribution<double>(0, 1e13)(random) / 3; };
  Comparison c;
  c.attempt = 2;
  c.last_step = 900;
  c.settled_step = 800;
  c.steps = 880;
  c.ranks = 16;
  c.first_judged_step = 10;
  c.last_judged_step = 899;
  c.time_ns = real();
  c.cost_ns = 1e-300;
  c.block_steps = 2;
  c.blocks = {{10, 11, 2, real(), real(), real(), real()}};
  Episode e;
  e.code = "STRAGGLER";
  e.pattern = "persistent";
  e.scope = Scope::kNode;
  e.node = "a b:7 \n\xC3\xA9";
  e.members = {{8, 15}, {17, 17}};
  e.below_for = 3;
  e.saved_ns = real();
  e.phases = {{"input", real()}, {"my phase", 0.1}};
  e.ended = true;
  c.episodes = {e, Episode()};
  c.leftover.cost.count[7] = 3;
  c.leftover.cost.sum[7] = real();
  c.leftover.deviation.count[127] = 1;
  c.leftover.late = {{3, real()}};
  c.leftover.phases = {{"gc", real()}, {"", 1}};
  c.leftover.spikes = {{5, 1, "input", real()}};
  c.settled = c.leftover;
  c.settled.samples_square = real();
  return c;
}

TEST(Comparison, TextComesBackExactly) {
  EXPECT_EQ(comparison_from_text(to_text(filled())), filled());
  EXPECT_EQ(comparison_from_text(to_text(Comparison())), Comparison());
}

TEST(Comparison, GarbageIsRefused) {
  const std::string text = to_text(filled());
  for (size_t size = 0; size < text.size(); ++size)
    EXPECT_FALSE(comparison_from_text(std::string_view(text).substr(0, size))) << size;
  EXPECT_FALSE(comparison_from_text(text + " 1"));
  EXPECT_FALSE(comparison_from_text("comparison 2"));
  std::mt19937_64 random(5);
  for (int i = 0; i < 20'000; ++i) {  // must not crash, whatever it answers
    std::string broken = text;
    for (int k = 0; k < 3; ++k)
      broken[random() % broken.size()] = static_cast<char>(random() % 256);
    if (const auto read = comparison_from_text(broken)) {
      EXPECT_LE(read->episodes.size(), Comparison::kMaxEpisodes);
    }
  }
}

}  // namespace
}  // namespace stepscope
