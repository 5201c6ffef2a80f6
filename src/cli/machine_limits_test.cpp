// Limits as the tuner finds them below a made-up root, up to the workers that they allow.
#include "cli/machine_limits.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace stepscope::cli {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

std::string root(const std::string& name) { return STEPSCOPE_SOURCE_DIR "/tests/fakeroot/" + name; }

std::optional<int> workers(const tuner::Machine& machine, const tuner::Seen& seen,
                           const std::string& name) {
  for (const tuner::Limit& limit : tuner::limits(machine, seen, 2))
    if (limit.name == name) return limit.workers;
  return std::nullopt;
}

TEST(MachineLimits, QuotaMemoryAndFilesOfTheGroupAboveBindTheWorkers) {
  tuner::Machine machine = machine_limits(100, root("v2"));
  EXPECT_DOUBLE_EQ(machine.cores, 1.5);
  EXPECT_EQ(machine.memory_limit_bytes, 4 * kGiB);
  EXPECT_EQ(machine.open_files, 256);
  EXPECT_EQ(machine.shm_free_bytes, std::nullopt);  // there is none below this root
  const tuner::Seen seen{.memory_used_bytes = 2 * kGiB, .worker_bytes = kGiB / 2};
  EXPECT_EQ(workers(machine, seen, "cores"), 1);
  EXPECT_EQ(workers(machine, seen, "memory"), 3);       // (0.9 x 4 - 2) / 0.5
  EXPECT_EQ(workers(machine, seen, "open_files"), 12);  // (256 - 128) / (8 + 2)
  EXPECT_EQ(workers(machine, seen, "shm"), std::nullopt);
  EXPECT_EQ(tuner::most_workers(tuner::limits(machine, seen, 2), 0), 1);
  machine.local_ranks = 2;
  EXPECT_EQ(workers(machine, seen, "memory"), 1);
}

TEST(MachineLimits, OneCoreByAffinityAndNoLimitOfFiles) {
  const tuner::Machine machine = machine_limits(100, root("limited"));
  EXPECT_DOUBLE_EQ(machine.cores, 1);
  EXPECT_EQ(machine.cores_reason, "affinity");
  EXPECT_EQ(machine.open_files, std::nullopt);  // unlimited
}

TEST(MachineLimits, WhatIsHiddenLimitsNothing) {
  const tuner::Machine machine = machine_limits(100, root("hidden"));
  EXPECT_EQ(machine.memory_limit_bytes, std::nullopt);
  EXPECT_EQ(machine.open_files, std::nullopt);
  const auto limits = tuner::limits(machine, {}, 2);
  EXPECT_FALSE(limits[1].workers);
  EXPECT_FALSE(limits[3].workers);
}

TEST(MachineLimits, OfThisProcess) {
  const tuner::Machine machine = machine_limits(::getpid());
  EXPECT_GT(machine.cores, 0);
  EXPECT_GT(machine.memory_limit_bytes.value_or(0), 0);
  EXPECT_GT(machine.open_files.value_or(1), 0);
}

}  // namespace
}  // namespace stepscope::cli
