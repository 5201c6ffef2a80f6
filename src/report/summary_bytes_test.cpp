#include "report/summary_bytes.h"

#include <gtest/gtest.h>

#include <random>

#include "report/report.h"
#include "report/run_fixture.h"

namespace stepscope::report {
namespace {

Summary full() {
  fixture::Case c = fixture::one_rank();
  c.run.exit_code = 3;
  c.run.notices = {"1,024 records were dropped", std::string("nul\0inside", 10)};
  c.run.unobserved = {"/usr/bin/python2 (pid 7): no torch"};
  LoaderHistory& loader = c.run.loaders.emplace_back();
  loader.loader = 1;
  loader.dataset = "data 'x'";
  loader.workers = 2;
  loader.worker(1).batches = 7;
  for (StepSample& s : c.run.ranks[0].raw) s.user_phase_ns = {{"augment", 5}};
  return summarize(c.run, c.findings);
}

void expect_same(const Summary& a, const Summary& b) {
  EXPECT_EQ(to_json(a), to_json(b));
  EXPECT_EQ(card(a, {}), card(b, {}));
  EXPECT_EQ(status(a, {.colour = true, .unicode = false, .width = 120}),
            status(b, {.colour = true, .unicode = false, .width = 120}));
  EXPECT_EQ(to_bytes(a), to_bytes(b));
}

TEST(SummaryBytes, ComeBackAsTheyWere) {
  const Summary s = full();
  ASSERT_FALSE(s.loaders.empty());
  const auto back = summary_from_bytes(to_bytes(s));
  ASSERT_TRUE(back);
  expect_same(s, *back);
  const Summary nothing = summarize(fixture::no_steps().run, {});
  const auto nothing_back = summary_from_bytes(to_bytes(nothing));
  ASSERT_TRUE(nothing_back);
  expect_same(nothing, *nothing_back);
  EXPECT_FALSE(summary_from_bytes(to_bytes(Summary{})));  // without what every view shows
}

TEST(SummaryBytes, OfAnotherLayoutOrVersionAreNothing) {
  const std::string bytes = to_bytes(full());
  for (const size_t at : {size_t{0}, size_t{12}}) {  // the layout; the version's first letter
    std::string other = bytes;
    other[at] = static_cast<char>(other[at] + 1);
    EXPECT_FALSE(summary_from_bytes(other)) << at;
  }
  EXPECT_FALSE(summary_from_bytes(""));
  EXPECT_FALSE(summary_from_bytes(bytes + "x"));
}

TEST(SummaryBytes, AnyBytesCanBeRead) {
  const std::string bytes = to_bytes(full());
  for (size_t size = 0; size < bytes.size(); size += 7)
    EXPECT_FALSE(summary_from_bytes(bytes.substr(0, size))) << size;
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 3000; ++i) {
    std::string other = bytes;
    for (int n = 0; n < 4; ++n) other[random() % other.size()] = static_cast<char>(random());
    if (const auto back = summary_from_bytes(other)) {
      (void)to_json(*back);
      (void)card(*back, {});
      (void)status(*back, {});
    }
  }
}

}  // namespace
}  // namespace stepscope::report
