// What a segment of loading adds up to, whose it is, and what hostile numbers do to it.
#include "agent/loader_fold.h"

#include <gtest/gtest.h>

#include <random>

#include "agent/loader_join.h"

namespace stepscope::agent {
namespace {

using wire::EventCode;

class Script {
 public:
  void add(EventCode code, uint8_t phase, uint64_t a, uint8_t flags = 0) {
    ring::EventValue e;
    e.code = code;
    e.phase = phase;
    e.a = a;
    e.flags = flags;
    fold.push(e, [](uint8_t number) { return "name" + std::to_string(number); });
  }
  void part(LoaderPart part, uint64_t ns) {
    add(EventCode::kLoaderPart, static_cast<uint8_t>(part), ns);
  }
  void batches(uint64_t count, uint64_t samples, uint8_t loader = 0) {
    add(EventCode::kLoaderBatches, loader, count << 32 | samples, wire::kDetailed);
  }
  LoaderFold fold;
};

Script training(int32_t pid) {
  Script s;
  s.add(EventCode::kLoader, kLoaderOwnEpoch, wire::pack_loader(1, 2, 3, 4));
  s.add(EventCode::kLoaderName, kFirstUserPhase, 1);
  s.add(EventCode::kLoaderWorker, 0, uint64_t{static_cast<uint32_t>(pid)} << 32 | 1 << 16 | 1);
  s.add(EventCode::kLoaderTaken, 1, wire::pack_taken(5'000, 1, 2), wire::kGradOn | wire::kReady);
  return s;
}

Script worker() {
  Script s;
  s.part(LoaderPart::kFetch, 10'000);
  s.part(LoaderPart::kLongestBatch, 7'000);
  s.add(EventCode::kLoaderPart, kFirstUserPhase + 1, 6'000);
  s.batches(2, 8);
  return s;
}

TEST(LoaderFold, AWorkerIsFoundByItsPid) {
  RunHistory run;
  LoaderJoin join;
  Script of_worker = worker(), of_training = training(77);
  join.add(of_worker.fold, 77, std::nullopt, run);
  EXPECT_TRUE(run.loaders.empty());
  EXPECT_FALSE(of_worker.fold.delta().empty()) << "kept until it is known whose it is";
  join.add(of_training.fold, 70, std::nullopt, run);
  EXPECT_TRUE(run.loaders.empty()) << "the training process has no rank yet";
  join.add(of_training.fold, 70, 3, run);
  join.add(of_worker.fold, 77, std::nullopt, run);
  ASSERT_EQ(run.loaders.size(), 1u);
  LoaderHistory& l = run.loaders[0];
  EXPECT_EQ(l.rank, 3);
  EXPECT_EQ(l.dataset, "name32");
  EXPECT_EQ(l.workers, 2);
  EXPECT_EQ(l.prefetch_factor, 3);
  EXPECT_EQ(l.batch_size, 4);
  EXPECT_TRUE(l.has(kLoaderOwnEpoch));
  EXPECT_EQ(l.asked_training, 1);
  EXPECT_EQ(l.ready, 1);
  EXPECT_EQ(l.depth, (std::vector<int64_t>{0, 0, 1}));
  ASSERT_EQ(l.by_worker.size(), 1u);
  EXPECT_EQ(l.by_worker[0].worker, 1);
  EXPECT_EQ(l.by_worker[0].pid, 77);
  EXPECT_EQ(l.by_worker[0].batches, 2);
  EXPECT_EQ(l.by_worker[0].samples, 8);
  EXPECT_EQ(l.by_worker[0].late_ns, 5'000);
  EXPECT_EQ(l.transform_ns.at("name33"), 6'000);
  EXPECT_EQ(l.by_worker[0].batch_ns.count(), 2);
}

TEST(LoaderFold, AfterARestartOfTheAgentTheHistoryKnowsTheWorkers) {
  RunHistory run;
  LoaderJoin first, second;
  Script of_training = training(77), of_worker = worker();
  first.add(of_training.fold, 70, 0, run);
  second.add(of_worker.fold, 77, std::nullopt, run);
  EXPECT_EQ(run.loaders[0].batches(), 2);
}

TEST(LoaderFold, ATrainingProcessThatLoadsItself) {
  RunHistory run;
  LoaderJoin join;
  Script s;
  s.add(EventCode::kLoader, 0, wire::pack_loader(1, 0, 0, 4));
  s.part(LoaderPart::kFetch, 10'000);
  s.batches(1, 4, 1);
  join.add(s.fold, 70, 0, run);
  EXPECT_EQ(run.loaders[0].by_worker[0].pid, 70);
  EXPECT_EQ(run.loaders[0].sum(LoaderPart::kFetch), 10'000);
}

TEST(LoaderFold, NothingThatASegmentSaysOverflows) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  RunHistory run;
  LoaderJoin join;
  Script s;
  for (int i = 0; i < 20'000; ++i) {
    const auto code = static_cast<EventCode>(24 + random() % 9);
    const uint64_t a = random() % 4 == 0 ? ~uint64_t{0} : random();
    s.add(code, static_cast<uint8_t>(random()), a, static_cast<uint8_t>(random()));
    if (i % 500 == 0) join.add(s.fold, static_cast<int32_t>(random() % 9), 0, run);
  }
  join.add(s.fold, 1, 0, run);
  EXPECT_LE(run.loaders.size(), RunHistory::kMaxLoaders);
  for (const LoaderHistory& l : run.loaders) {
    EXPECT_LE(l.by_worker.size(), LoaderHistory::kMaxWorkers);
    EXPECT_LE(l.transform_ns.size(), LoaderHistory::kMaxTransforms);
    EXPECT_LE(l.depth.size(), LoaderHistory::kMaxDepth);
    EXPECT_GE(l.waited_ns, 0);
    EXPECT_TRUE(loader_from_text(to_text(l)));
  }
}

}  // namespace
}  // namespace stepscope::agent
