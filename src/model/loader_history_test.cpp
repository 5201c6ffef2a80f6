#include "model/loader_history.h"

#include <gtest/gtest.h>

#include <limits>

namespace stepscope {
namespace {

LoaderHistory full() {
  LoaderHistory l;
  l.rank = 3;
  l.loader = 2;
  l.dataset = "A name with spaces: and colons";
  l.workers = 2;
  l.flags = kLoaderOwnEpoch | kLoaderSpawned;
  l.starts = 4;
  l.transform_ns = {{"Resize", 5}, {"a b", 6}};
  l.wait_ns.add(1'000'000);
  l.depth = {1, 0, 7};
  l.main[static_cast<size_t>(LoaderPart::kReceive)] = 9;
  for (const int32_t i : {1, 0}) {
    LoaderWorker& w = l.worker(i);
    w.pid = 100 + i;
    w.batches = 10;
    w[LoaderPart::kFetch] = 1'000'000 + i;
    w.batch_ns.add(100'000, 10);
    w.io_seen = i == 1;
  }
  return l;
}

TEST(LoaderHistory, TextAndBack) {
  const std::string text = to_text(full());
  const auto back = loader_from_text(text);
  ASSERT_TRUE(back);
  EXPECT_EQ(to_text(*back), text);
  EXPECT_EQ(back->dataset, full().dataset);
  EXPECT_EQ(back->by_worker.size(), 2u);
  EXPECT_EQ(back->by_worker[1].pid, 101);
  EXPECT_EQ(back->sum(LoaderPart::kFetch), 2'000'001);
}

// As a version before shared_bytes and asked_which wrote it.
TEST(LoaderHistory, TheOldText) {
  const auto numbers = [](size_t count) {
    std::string text;
    for (size_t i = 0; i < count; ++i) text += ' ' + std::to_string(i);
    return text;
  };
  const std::string text = "loader 1" + numbers(5 + 7) + numbers(18) + " 3 4:Data 0 0 0 1" +
                           numbers(2 + 8) + numbers(18) + " 1 0 end";
  const auto loader = loader_from_text(text);
  ASSERT_TRUE(loader);
  EXPECT_EQ(loader->dataset, "Data");
  ASSERT_EQ(loader->by_worker.size(), 1u);
  EXPECT_EQ(loader->by_worker[0][LoaderPart::kPin], 17);
  EXPECT_EQ(loader->by_worker[0][LoaderPart::kSharedBytes], 0);
  EXPECT_TRUE(loader->by_worker[0].io_seen);
}

TEST(LoaderHistory, AnythingElseIsNoLoader) {
  const std::string text = to_text(full());
  for (size_t cut = 0; cut < text.size(); ++cut)
    EXPECT_FALSE(loader_from_text(text.substr(0, cut))) << cut;
  EXPECT_FALSE(loader_from_text(text + " 1"));
  EXPECT_FALSE(loader_from_text("loader 1 -1"));
}

TEST(LoaderHistory, SumsStop) {
  int64_t sum = LoaderHistory::kMost - 1;
  add_bounded(sum, 5);
  EXPECT_EQ(sum, LoaderHistory::kMost);
  LoaderHistory l;
  for (int32_t i = 0; i < 1000; ++i) l.worker(i).batches = 1;
  EXPECT_EQ(l.by_worker.size(), LoaderHistory::kMaxWorkers);
}

TEST(DurationBins, QuantilesWithinTenPercent) {
  DurationBins bins;
  EXPECT_FALSE(bins.quantile(0.5));
  for (int64_t us = 1; us <= 1000; ++us) bins.add(us * 1000);
  EXPECT_NEAR(*bins.quantile(0.5), 500e3, 0.1 * 500e3);
  EXPECT_NEAR(*bins.quantile(0.99), 990e3, 0.1 * 990e3);
  bins.add(-1);
  bins.add(std::numeric_limits<int64_t>::max());
  EXPECT_EQ(bins.count(), 1002);
}

}  // namespace
}  // namespace stepscope
