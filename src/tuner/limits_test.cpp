#include "tuner/limits.h"

#include <gtest/gtest.h>

namespace stepscope::tuner {
namespace {

constexpr int64_t kGb = 1'000'000'000, kMb = 1'000'000;

TEST(Limits, CoresAreDividedByTheRanksOfTheNode) {
  Machine machine{.cores = 8.5, .cores_reason = "cgroup quota 8.5 of /a", .local_ranks = 4};
  const auto all = limits(machine, {}, 2);
  EXPECT_EQ(all[0].workers, 2);
  EXPECT_EQ(all[0].arithmetic, "8.5 usable cores (cgroup quota 8.5 of /a) / 4 ranks = 2");
  EXPECT_EQ(most_workers(all, 0), 2);
  EXPECT_EQ(most_workers(all, 6), 6);  // the user's own stand
  Seen seen;
  seen.workers_wait = true;
  EXPECT_EQ(limits(machine, seen, 2)[0].workers, 8);
  machine.cores = 0.5;
  EXPECT_EQ(limits(machine, {}, 2)[0].workers, 1);
}

TEST(Limits, MemoryCountsWhatIsThereAndWhatAWorkerTakes) {
  const Machine machine{.cores = 64,
                        .cores_reason = "machine",
                        .local_ranks = 2,
                        .memory_limit_bytes = 10 * kGb,
                        .memory_reason = "cgroup /job"};
  Seen seen{.memory_used_bytes = 5 * kGb, .rank_bytes = kGb};
  EXPECT_EQ(limits(machine, seen, 2)[1].workers, 2);  // (9 - 5) / 1 / 2
  EXPECT_NE(limits(machine, seen, 2)[1].arithmetic.find("as the training process"),
            std::string::npos);
  seen.worker_bytes = 500 * kMb;
  EXPECT_EQ(limits(machine, seen, 2)[1].workers, 4);
  EXPECT_EQ(limits(machine, seen, 2)[1].arithmetic,
            "(0.9 x 10 GB (cgroup /job) - 5 GB in use) / 500 MB a worker / 2 ranks = 4");
  seen.memory_used_bytes = 9 * kGb;
  EXPECT_EQ(limits(machine, seen, 2)[1].workers, 0);
}

TEST(Limits, QueuedBatchesMustFitSharedMemoryAndDescriptors) {
  const Machine machine{
      .cores = 64, .cores_reason = "machine", .shm_free_bytes = 64 * kMb, .open_files = 256};
  Seen seen{.batch_bytes = 6 * kMb};
  seen.batch_tensors = 4;
  EXPECT_EQ(limits(machine, seen, 2)[2].workers, 4);  // 51 MB / 6 MB / 2
  EXPECT_EQ(limits(machine, seen, 8)[2].workers, 1);
  EXPECT_EQ(limits(machine, seen, 2)[3].workers, 8);  // (256 - 128) / (8 + 4 x 2)
  EXPECT_EQ(most_queued(machine, seen), 8);
  EXPECT_FALSE(most_queued({}, {}));
}

TEST(Limits, WhatIsNotKnownLimitsNothing) {
  const auto all = limits({}, {}, 2);
  for (const Limit& limit : all) EXPECT_FALSE(limit.workers) << limit.name;
  EXPECT_GT(most_workers(all, 0), 100);
}

}  // namespace
}  // namespace stepscope::tuner
