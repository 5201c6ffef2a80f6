// What ends a run or spoils its data without costing time: each from what shows it, and not from what nearly does.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/engine.h"

namespace stepscope::engine {
namespace {

constexpr double kMb = 1 << 20;

class Case {
 public:
  Case() {
    node.node = "n0";
    RankHistory& rank = run.ranks.emplace_back();
    rank.node = "n0";
    loader.loader = 1;
    loader.dataset = "Data";
    loader.workers = 2;
    loader.prefetch_factor = 2;
    for (int32_t i = 0; i < 2; ++i) {
      LoaderWorker& w = loader.worker(i);
      w.processes = 1;
      w.batches = w.samples = 50;
      w[LoaderPart::kFetch] = w[LoaderPart::kDetailFetch] = 1'000'000'000;
      w[LoaderPart::kSharedBytes] = 50 * 4 * static_cast<int64_t>(kMb);
    }
  }
  const Finding* find(const char* code) {
    run.nodes = {node};
    run.loaders = {loader};
    found = diagnose(run);
    const auto at = std::find_if(found.begin(), found.end(),
                                 [&](const Finding& finding) { return finding.code == code; });
    return at == found.end() ? nullptr : &*at;
  }
  NodeHistory node;
  LoaderHistory loader;
  RunHistory run;
  std::vector<Finding> found;
};

TEST(MemoryKilled, IsTheKernelsOwnCountAndTheVerdict) {
  Case run;
  run.node.memory_kills.add(0);
  EXPECT_EQ(run.find("MEMORY_KILLED"), nullptr);
  run.node.memory_kills.add(2);
  const Finding* finding = run.find("MEMORY_KILLED");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->severity, Severity::kCritical);
  EXPECT_NE(finding->title.find("2 processes"), std::string::npos) << finding->title;
  EXPECT_EQ(run.found.front().code, "MEMORY_KILLED");
}

TEST(ShmPressure, IsForeseenFromBatchesThatMayBeLoadedAhead) {
  Case run;
  run.node.shm_size_bytes.add(64 * kMb);
  run.node.shm_used_bytes.add(8 * kMb);
  EXPECT_EQ(run.find("SHM_PRESSURE"), nullptr) << "4 MB x (2 x 2 + 1) = 20 of 64 MB";
  run.loader.prefetch_factor = 8;
  const Finding* finding = run.find("SHM_PRESSURE");
  ASSERT_NE(finding, nullptr) << "4 MB x (2 x 8 + 1) = 68 of 64 MB";
  EXPECT_EQ(finding->severity, Severity::kWarning);
  EXPECT_NE(finding->title.find("68 MB"), std::string::npos) << finding->title;
  EXPECT_NE(finding->advice.front().text.find("4.0 MB x (2 workers x 8 + 1)"), std::string::npos)
      << finding->advice.front().text;
}

TEST(ShmPressure, IsSeenWhoeverFillsIt) {
  Case run;
  run.loader.workers = 0;
  run.node.shm_size_bytes.add(64 * kMb);
  run.node.shm_used_bytes.add(63 * kMb);
  const Finding* finding = run.find("SHM_PRESSURE");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->severity, Severity::kCritical);
  EXPECT_EQ(finding->not_measured.size(), 1u);
}

TEST(FilesPressure, IsTheProcessNearestToItsLimit) {
  Case run;
  run.node.open_files_share.add(0.79);
  EXPECT_EQ(run.find("FILES_PRESSURE"), nullptr);
  run.node.open_files_share.add(0.81);
  ASSERT_NE(run.find("FILES_PRESSURE"), nullptr);
  EXPECT_EQ(run.find("FILES_PRESSURE")->severity, Severity::kWarning);
}

TEST(RepeatedSamples, WhereNoWorkerOfAnIterableDatasetAsksForItsPart) {
  Case run;
  EXPECT_EQ(run.find("REPEATED_SAMPLES"), nullptr) << "a map dataset";
  run.loader.flags = kLoaderIterable;
  const Finding* finding = run.find("REPEATED_SAMPLES");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->title.find("2 times"), std::string::npos) << finding->title;
  run.loader.worker(1)[LoaderPart::kAskedWhich] = 1;
  EXPECT_EQ(run.find("REPEATED_SAMPLES"), nullptr);
  run.loader.worker(1)[LoaderPart::kAskedWhich] = 0;
  run.loader.flags = kLoaderIterable | kLoaderSplits;
  EXPECT_EQ(run.find("REPEATED_SAMPLES"), nullptr);
  run.loader.flags = kLoaderIterable;
  run.loader.worker(1).batches = 0;
  EXPECT_EQ(run.find("REPEATED_SAMPLES"), nullptr) << "only one worker was looked into";
}

TEST(ForkedHandles, OnlyOfForkedWorkers) {
  Case run;
  run.loader.flags = kLoaderHandles;
  EXPECT_NE(run.find("FORKED_HANDLES"), nullptr);
  run.loader.flags = kLoaderHandles | kLoaderSpawned;
  EXPECT_EQ(run.find("FORKED_HANDLES"), nullptr);
  run.loader.flags = kLoaderHandles;
  run.loader.workers = 0;
  EXPECT_EQ(run.find("FORKED_HANDLES"), nullptr);
}

}  // namespace
}  // namespace stepscope::engine
