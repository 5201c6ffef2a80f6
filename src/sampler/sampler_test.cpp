#include "sampler/sampler.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/clock.h"
#include "sampler/proc.h"

namespace stepscope::sampler {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kSecond = 1'000'000'000;
const int64_t kPage = sysconf(_SC_PAGESIZE);
const double kTicks = static_cast<double>(sysconf(_SC_CLK_TCK));

// A copy of tests/fakeroot/<name> that a test may change.
class FakeRoot {
 public:
  explicit FakeRoot(const std::string& name) {
    std::string pattern = (fs::temp_directory_path() / "stepscope-fakeroot-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
    fs::copy(fs::path(STEPSCOPE_SOURCE_DIR) / "tests/fakeroot" / name, path_,
             fs::copy_options::recursive);
  }
  ~FakeRoot() { fs::remove_all(path_); }
  const std::string& path() const { return path_; }
  void write(const std::string& file, const std::string& text) const {
    const fs::path path = fs::path(path_) / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  void remove(const std::string& file) const { fs::remove_all(path_ + "/" + file); }
  void set_stat(int pid, int ppid, int64_t user_ticks, int64_t start, char state = 'S') const {
    write("proc/" + std::to_string(pid) + "/stat",
          std::to_string(pid) + " (x) " + state + " " + std::to_string(ppid) +
              " 1 1 0 -1 0 0 0 0 0 " + std::to_string(user_ticks) + " 0 0 0 20 0 1 0 " +
              std::to_string(start) + " 0 0 0\n");
  }

 private:
  std::string path_;
};

const std::vector<Process> kTwoRanks = {{100, 1000, 0}, {200, 1001, 1}};

TEST(Parse, StatOfAnyTextIsAValueOrAbsent) {
  const std::string good = "7 (a) b)) R 3 0 0 0 -1 0 0 0 0 0 1 2 3 4 20 0 1 0 99 0\n";
  ASSERT_TRUE(parse_stat(good));
  EXPECT_EQ(parse_stat(good)->state, 'R');
  EXPECT_EQ(parse_stat(good)->ppid, 3);
  EXPECT_EQ(parse_stat(good)->cpu_ticks, 10);
  EXPECT_EQ(parse_stat(good)->start_ticks, 99);
  for (size_t length = 0; length < good.find("99"); ++length)
    EXPECT_FALSE(parse_stat(good.substr(0, length))) << length;
  EXPECT_FALSE(parse_stat("7 (a) R x 0 0 0 -1 0 0 0 0 0 1 2 3 4 20 0 1 0 99 0"));
}

TEST(Parse, CpuLists) {
  EXPECT_EQ(parse_cpu_list("0-2,7\n"), (std::set<int>{0, 1, 2, 7}));
  for (const char* bad :
       {"", "\n", "x", "3-1", "0-99999999", "-1", "1,,2", "1-", "18446744073709551616"})
    EXPECT_FALSE(parse_cpu_list(bad)) << bad;
}

TEST(Parse, ValuesAtTheBeginningOfALine) {
  const std::string text = "MemTotalX: 1\nMemTotal:   12 kB\nnr_periods 7\nmax\n";
  EXPECT_EQ(value_of(text, "MemTotal"), 12);
  EXPECT_EQ(value_of(text, "nr_periods"), 7);
  EXPECT_EQ(value_of(text, "nr_throttled"), std::nullopt);
  EXPECT_EQ(value_of(text, "max"), std::nullopt);
}

TEST(Cgroup, OddPathsDoNotLeaveTheTree) {
  const FakeRoot root("v2");
  for (const char* path : {"0::job", "0::", "0::/../../etc", "::", "0", "0::/job//"}) {
    root.write("proc/100/cgroup", path);
    EXPECT_GT(Sampler(root.path()).usable_cores(100).usable, 0) << path;
  }
}

TEST(ProcessStart, ReadsField22WhateverTheName) {
  const FakeRoot root("v2");
  EXPECT_EQ(process_start(100, root.path()), 1000);  // its name holds a blank and brackets
  EXPECT_EQ(process_start(101, root.path()), std::nullopt);
}

TEST(ProcessAlive, ZombieOtherStartAndMissingAreDead) {
  const FakeRoot root("v2");
  EXPECT_TRUE(process_alive(100, 1000, root.path()));
  EXPECT_TRUE(process_alive(100, 0, root.path()));
  EXPECT_FALSE(process_alive(100, 999, root.path()));  // the pid was given to another process
  EXPECT_FALSE(process_alive(112, 1000, root.path()));
  EXPECT_FALSE(process_alive(101, 1000, root.path()));
}

TEST(ProcessAlive, RealChild) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  const auto start = process_start(child);
  ASSERT_TRUE(start);
  EXPECT_TRUE(process_alive(child, *start));
  kill(child, SIGKILL);
  siginfo_t info;
  waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  EXPECT_FALSE(process_alive(child, *start));  // a zombie
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(process_alive(child, *start));
  EXPECT_FALSE(process_alive(0, 0));
}

TEST(UsableCores, QuotaOfAnAncestorIsTheTightest) {
  const FakeRoot root("v2");
  const auto cores = Sampler(root.path()).usable_cores(100);
  EXPECT_DOUBLE_EQ(cores.usable, 1.5);
  EXPECT_EQ(cores.reason, "cgroup quota 1.5 of /job");
}

TEST(UsableCores, CpusetWhenThereIsNoQuota) {
  const FakeRoot root("v2");
  for (const char* group : {"job", "job/run/rank"})
    root.write(std::string("sys/fs/cgroup/") + group + "/cpu.max", "max 100000\n");
  const auto cores = Sampler(root.path()).usable_cores(100);
  EXPECT_DOUBLE_EQ(cores.usable, 6);
  EXPECT_EQ(cores.reason, "cpuset of /job/run/rank");
}

TEST(UsableCores, V1BelowTheContainersMount) {
  const FakeRoot root("v1");
  const auto cores = Sampler(root.path()).usable_cores(100);
  EXPECT_DOUBLE_EQ(cores.usable, 2.5);
  EXPECT_EQ(cores.reason, "cgroup quota 2.5 of /");
  root.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  EXPECT_DOUBLE_EQ(Sampler(root.path()).usable_cores(100).usable, 4);
}

TEST(UsableCores, ImpossibleCpusDoNotCount) {  // affinity 0-63 on a machine with two
  const FakeRoot root("hybrid");
  const auto cores = Sampler(root.path()).usable_cores(100);
  EXPECT_DOUBLE_EQ(cores.usable, 2);
  EXPECT_EQ(cores.reason, "machine");
}

TEST(UsableCores, Affinity) {
  const FakeRoot root("limited");
  const auto cores = Sampler(root.path()).usable_cores(100);
  EXPECT_DOUBLE_EQ(cores.usable, 1);
  EXPECT_EQ(cores.reason, "affinity");
}

TEST(UsableCores, HiddenSaysWhy) {
  const FakeRoot root("hidden");
  const auto cores = Sampler(root.path()).usable_cores(100);
  EXPECT_DOUBLE_EQ(cores.usable, 0);
  EXPECT_NE(cores.reason.find("not measured"), std::string::npos);
}

TEST(UsableCores, HereAgreesWithTheScheduler) {
  cpu_set_t mask;
  ASSERT_EQ(sched_getaffinity(0, sizeof(mask), &mask), 0);
  const auto cores = Sampler().usable_cores(getpid());
  EXPECT_GT(cores.usable, 0);
  EXPECT_LE(cores.usable, CPU_COUNT(&mask));
}

TEST(MemoryLimit, SmallestOfGroupAncestorsAndMachine) {
  const FakeRoot v2("v2"), v1("v1"), hybrid("hybrid"), hidden("hidden");
  EXPECT_EQ(Sampler(v2.path()).memory_limit(100).bytes, int64_t{4} << 30);
  EXPECT_EQ(Sampler(v2.path()).memory_limit(100).reason, "cgroup limit of /job");
  EXPECT_EQ(Sampler(v1.path()).memory_limit(100).bytes, 2147483648);
  EXPECT_EQ(Sampler(hybrid.path()).memory_limit(100).bytes, int64_t{16000000} * 1024);
  EXPECT_EQ(Sampler(hybrid.path()).memory_limit(100).reason, "machine");
  EXPECT_EQ(Sampler(hidden.path()).memory_limit(100).bytes, std::nullopt);
  v2.write("sys/fs/cgroup/job/memory.max", "999999999999\n");  // more than the machine has
  v2.write("sys/fs/cgroup/job/run/memory.max", "max\n");
  EXPECT_EQ(Sampler(v2.path()).memory_limit(100).reason, "machine");
}

TEST(Sample, RanksAndTheirWorkers) {
  const FakeRoot root("v2");
  Sampler sampler(root.path());
  NodeHistory node;
  const auto out = sampler.sample(kTwoRanks, kSecond, node);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out.at(0).rss_bytes, 5000 * kPage);
  EXPECT_EQ(out.at(0).anon_bytes, 3000 * kPage);  // without files and shared memory
  EXPECT_EQ(out.at(0).worker_pss_bytes,
            5000 * 1024);                        // 4000 + 1000 kB: grandchild too, file pages not
  EXPECT_EQ(out.at(0).cpu_cores, std::nullopt);  // one reading is no rate
  EXPECT_EQ(out.at(1).worker_pss_bytes, std::nullopt);  // no workers is not 0 bytes of workers
  EXPECT_DOUBLE_EQ(node.job_memory_bytes.peak,
                   static_cast<double>((10000 + 5000) * 1024 + 3000 * kPage));
  EXPECT_DOUBLE_EQ(node.cores_usable, 1.5);
  EXPECT_EQ(node.memory_limit_bytes, int64_t{4} << 30);
  // of the limiting group: 3 GiB without 1.5 GiB of page cache
  EXPECT_DOUBLE_EQ(node.memory_bytes.peak, static_cast<double>(int64_t{3} << 29));
}

// Those before the run, and those of the group above, are not this run's.
TEST(Sample, KillsForLackOfMemoryAreCountedFromTheFirstCall) {
  const FakeRoot root("v2");
  Sampler sampler(root.path());
  NodeHistory node;
  sampler.count_memory_kills(node);
  EXPECT_EQ(node.memory_kills.count, 0);
  EXPECT_FALSE(node.memory_kills.not_measured.empty());
  const std::string own = "sys/fs/cgroup/job/run/rank/memory.events";
  root.write("sys/fs/cgroup/job/memory.events", "oom 9\noom_kill 9\n");
  root.write(own, "oom 3\noom_kill 2\noom_group_kill 0\n");
  (void)sampler.sample(kTwoRanks, kSecond, node);
  EXPECT_EQ(node.memory_kills.peak, 0);
  root.write(own, "oom 4\noom_kill 3\noom_group_kill 0\n");
  sampler.count_memory_kills(node);
  EXPECT_EQ(node.memory_kills.peak, 1);
}

// A first call that finds no rank knows no group: the machine's count is not where the group's begins.
TEST(Sample, KillsOfTheMachineAreNotTakenForTheGroups) {
  const FakeRoot root("v2");
  Sampler sampler(root.path());
  NodeHistory node;
  const std::string own = "sys/fs/cgroup/job/run/rank/memory.events";
  root.write("proc/vmstat", "oom_kill 0\n");
  root.write(own, "oom_kill 7\n");
  (void)sampler.sample({}, kSecond, node);
  (void)sampler.sample(kTwoRanks, 2 * kSecond, node);
  EXPECT_EQ(node.memory_kills.peak, 0);
  root.write(own, "oom_kill 8\n");
  sampler.count_memory_kills(node);
  EXPECT_EQ(node.memory_kills.peak, 1);
}

TEST(Sample, WithoutAGroupTheMachineCountsKills) {
  const FakeRoot root("v1");
  Sampler sampler(root.path());
  NodeHistory node;
  root.write("proc/vmstat", "nr_free_pages 1\noom_kill 5\n");
  (void)sampler.sample(kTwoRanks, kSecond, node);
  root.write("proc/vmstat", "nr_free_pages 1\noom_kill 7\n");
  sampler.count_memory_kills(node);
  EXPECT_EQ(node.memory_kills.peak, 2);
}

TEST(Sample, OpenFilesOfTheProcessNearestToItsLimit) {
  const FakeRoot root("v2");
  Sampler sampler(root.path());
  NodeHistory node;
  const auto has_open = [&](int pid, int files, int most) {
    const std::string folder = root.path() + "/proc/" + std::to_string(pid) + "/fd";
    fs::create_directories(folder);
    for (int i = 0; i < files; ++i) std::ofstream(folder + "/" + std::to_string(i)) << "";
    root.write("proc/" + std::to_string(pid) + "/limits",
               "Limit                     Soft Limit           Hard Limit           Units\n"
               "Max open files            " +
                   std::to_string(most) + "                  4096                 files\n");
  };
  has_open(100, 6, 8);
  has_open(111, 9, 10);
  has_open(200, 2, 1000);
  (void)sampler.sample(kTwoRanks, kSecond, node);
  EXPECT_EQ(node.open_files_share.count, 0) << "only in every eighth call, from the second on";
  (void)sampler.sample(kTwoRanks, 2 * kSecond, node);
  EXPECT_EQ(node.open_files_share.count, 1);
  EXPECT_DOUBLE_EQ(node.open_files_share.peak, 0.9);
}

// Faults of memory and storage, and ticks of waiting for storage: fields 10, 12 and 42.
std::string stat_with(int minor, int major, int disk_ticks) {
  return "100 (x) S 50 1 1 0 -1 0 " + std::to_string(minor) + " 0 " + std::to_string(major) +
         " 0 100 0 0 0 20 0 1 0 1000 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 " +
         std::to_string(disk_ticks) + " 0 0\n";
}

TEST(Sample, FaultsDiskWaitAndStealOfARank) {
  for (const bool counted : {true, false}) {
    const FakeRoot root("v2");
    root.write("proc/sys/kernel/task_delayacct", counted ? "1\n" : "0\n");
    Sampler sampler(root.path());
    NodeHistory node;
    root.write("proc/100/stat", stat_with(1000, 10, 0));
    const auto first = sampler.sample(kTwoRanks, kSecond, node).at(0);
    EXPECT_FALSE(first.minor_faults_per_s || first.disk_wait_share || first.cpu_steal_share);
    root.write("proc/100/stat", stat_with(5000, 16, counted ? static_cast<int>(kTicks) : 0));
    root.write("proc/stat", "cpu  1100 0 0 50200 100 0 0 105 0 0\n");
    const auto out = sampler.sample(kTwoRanks, 3 * kSecond, node).at(0);
    EXPECT_DOUBLE_EQ(*out.minor_faults_per_s, 2000);
    EXPECT_DOUBLE_EQ(*out.major_faults_per_s, 3);
    EXPECT_DOUBLE_EQ(*out.cpu_steal_share, 100.0 / 400);
    EXPECT_EQ(out.disk_wait_share, counted ? std::optional(0.5) : std::nullopt);
  }
}

TEST(Sample, RatesFromTwoReadings) {
  const FakeRoot root("v2");
  Sampler sampler(root.path());
  NodeHistory node;
  root.write("proc/100/schedstat", "1000000000 1000000000 7\n");
  (void)sampler.sample(kTwoRanks, kSecond, node);
  EXPECT_EQ(node.cpu_cores.count, 0);
  EXPECT_EQ(node.cpu_cores.not_measured, "the run was too short for two readings");
  // Rank 0 used 40 ticks more and waited for its workers (50 + 10 + 5), which used 10 more before.
  root.remove("proc/110");
  root.remove("proc/111");
  root.remove("proc/112");
  root.set_stat(100, 50, 120 + 50 + 10 + 5 + 40 + 10, 1000);
  root.write("proc/stat", "cpu  1300 0 0 50000 100 0 0 5 0 0\n");
  root.write("proc/100/schedstat", "9000000000 2500000000 77\n");
  root.write("proc/100/io", "read_bytes: 5100\nwrite_bytes: 2000\n");
  root.write("sys/fs/cgroup/job/cpu.stat", "nr_periods 110\nnr_throttled 14\n");
  root.write(
      "proc/net/dev",
      "  eth0: 3000 1 0 0 0 0 0 0 1500 1 0 0 0 0 0 0\n  lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n");
  const auto out = sampler.sample(kTwoRanks, 3 * kSecond, node);
  ASSERT_TRUE(out.at(0).cpu_cores);
  EXPECT_NEAR(*out.at(0).cpu_cores, 50 / kTicks / 2, 1e-9);
  EXPECT_DOUBLE_EQ(*out.at(1).cpu_cores, 0);
  EXPECT_DOUBLE_EQ(*out.at(0).cpu_wait_share, 0.75);  // 1.5 s more in 2 s
  EXPECT_EQ(out.at(1).cpu_wait_share, std::nullopt);  // the kernel does not say
  EXPECT_DOUBLE_EQ(*out.at(0).cpu_steal_share, 0.0);
  EXPECT_EQ(out.at(0).disk_wait_share, std::nullopt);  // it does not count that
  EXPECT_NEAR(node.cpu_cores.peak, 300 / kTicks / 2, 1e-9);
  EXPECT_DOUBLE_EQ(node.disk_read_bps.peak, 4000.0 / 2);  // 1000 + 100 -> 5100
  EXPECT_DOUBLE_EQ(node.disk_write_bps.peak, 0);
  EXPECT_DOUBLE_EQ(node.net_rx_bps.peak, 1000);
  EXPECT_DOUBLE_EQ(node.net_tx_bps.peak, 500);
  EXPECT_DOUBLE_EQ(node.cpu_throttled_share.peak, 0.4);
}

TEST(Sample, CounterThatFallsGivesNoRate) {
  const FakeRoot root("v2");
  Sampler sampler(root.path());
  NodeHistory node;
  (void)sampler.sample(kTwoRanks, kSecond, node);
  root.remove("proc/110");  // ended, but not waited for by the rank
  root.remove("proc/111");
  EXPECT_EQ(sampler.sample(kTwoRanks, 2 * kSecond, node).at(0).cpu_cores, std::nullopt);
}

TEST(Sample, LateRanksFindTheirEarlierChildren) {
  const FakeRoot root("v2");
  Sampler sampler(root.path());
  NodeHistory node;
  (void)sampler.sample({{200, 1001, 1}}, kSecond, node);
  const auto out = sampler.sample(kTwoRanks, 10 * kSecond, node);
  EXPECT_EQ(out.at(0).worker_pss_bytes, 5000 * 1024);
}

TEST(Sample, NewWorkerIsSeenAtOnce) {
  const FakeRoot root("v2");
  Sampler sampler(root.path());
  NodeHistory node;
  (void)sampler.sample(kTwoRanks, kSecond, node);
  fs::create_directory(root.path() + "/proc/250");
  root.set_stat(250, 200, 30, 5000);
  root.write("proc/250/smaps_rollup", "Pss: 700 kB\n");
  EXPECT_NEAR(*sampler.sample(kTwoRanks, 2 * kSecond, node).at(1).cpu_cores, 30 / kTicks, 1e-9);
  EXPECT_EQ(sampler.sample(kTwoRanks, 4 * kSecond, node).at(1).worker_pss_bytes, 700 * 1024);
}

TEST(Sample, PssRoundsAreSpacedAndSplitByBudget) {
  const FakeRoot root("v2");
  Sampler spaced(root.path());
  NodeHistory node;
  EXPECT_TRUE(spaced.sample(kTwoRanks, kSecond, node).at(0).worker_pss_bytes);
  const int64_t early = kSecond + Sampler::kPssIntervalNs - 1;
  EXPECT_FALSE(spaced.sample(kTwoRanks, early, node).at(0).worker_pss_bytes);
  EXPECT_TRUE(spaced.sample(kTwoRanks, early + 1, node).at(0).worker_pss_bytes);
  EXPECT_EQ(node.job_memory_bytes.count, 1);  // the ranks' own share is read more rarely

  Sampler split(root.path(), 0);  // one process a call: rank 0, two workers, a zombie
  NodeHistory slow;
  int calls = 1;
  while (!split.sample(kTwoRanks, calls * kSecond, slow).at(0).worker_pss_bytes && calls < 10)
    ++calls;
  EXPECT_EQ(calls, 4);
  EXPECT_DOUBLE_EQ(slow.job_memory_bytes.peak, node.job_memory_bytes.peak);
}

TEST(Sample, RanksWithoutWorkersNeedNoPss) {
  const FakeRoot root("v2");
  root.remove("proc/200/smaps_rollup");
  Sampler sampler(root.path());
  NodeHistory node;
  (void)sampler.sample({{200, 1001, 1}}, kSecond, node);
  EXPECT_DOUBLE_EQ(node.job_memory_bytes.peak, static_cast<double>(3000 * kPage));
}

TEST(SampleMemory, RanksOnlyAndOnlyTheLiving) {
  const FakeRoot root("v2");
  root.set_stat(200, 50, 0, 7777);  // another process with that pid
  const auto out = Sampler(root.path()).sample_memory(kTwoRanks, kSecond);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out.at(0).anon_bytes, 3000 * kPage);
  EXPECT_EQ(out.at(0).mono_ns, kSecond);
  EXPECT_FALSE(out.at(0).cpu_cores);
  EXPECT_FALSE(out.at(0).worker_pss_bytes);
}

TEST(Sample, UnreadablePssIsAbsentWithItsReason) {
  const FakeRoot root("v2");
  root.remove("proc/110/smaps_rollup");
  Sampler sampler(root.path());
  NodeHistory node;
  EXPECT_EQ(sampler.sample(kTwoRanks, kSecond, node).at(0).worker_pss_bytes, std::nullopt);
  EXPECT_EQ(node.job_memory_bytes.count, 0);
  EXPECT_NE(node.job_memory_bytes.not_measured.find("110/smaps_rollup: No such file"),
            std::string::npos);
}

TEST(Sample, DeadAndReplacedRanksAreLeftOut) {
  const FakeRoot root("v2");
  root.set_stat(100, 50, 0, 7777);  // another process with the rank's pid
  root.set_stat(200, 50, 0, 1001, 'Z');
  Sampler sampler(root.path());
  NodeHistory node;
  EXPECT_TRUE(sampler.sample(kTwoRanks, kSecond, node).empty());
}

TEST(Sample, HiddenProcGivesReasonsAndNoNumbers) {
  const FakeRoot root("hidden");
  Sampler sampler(root.path());
  NodeHistory node;
  for (int i = 1; i < 4; ++i) EXPECT_TRUE(sampler.sample(kTwoRanks, i * kSecond, node).empty());
  const std::pair<const Gauge*, const char*> gauges[] = {
      {&node.cpu_cores, "/proc/stat: No such file"},
      {&node.memory_bytes, "/proc/meminfo: No such file"},
      {&node.cpu_throttled_share, "no cpu cgroup is visible"},
      {&node.job_memory_bytes, "no process of the run is visible"},
      {&node.disk_read_bps, "no process of the run is visible"},
      {&node.disk_write_bps, "no process of the run is visible"},
      {&node.net_rx_bps, "/proc/net/dev: No such file"},
      {&node.net_tx_bps, "/proc/net/dev: No such file"}};
  for (const auto& [gauge, reason] : gauges) {
    EXPECT_EQ(gauge->count, 0);
    EXPECT_NE(gauge->not_measured.find(reason), std::string::npos) << gauge->not_measured;
  }
}

TEST(Sample, WithoutQuotaThrottlingDoesNotApply) {
  const FakeRoot root("hybrid");
  Sampler sampler(root.path());
  NodeHistory node;
  (void)sampler.sample({{100, 1000, 0}}, kSecond, node);
  EXPECT_EQ(node.cpu_throttled_share.not_measured, "no CPU quota is set");
  EXPECT_DOUBLE_EQ(node.memory_bytes.peak, 6000000.0 * 1024);  // the machine's, as the limit is
}

// The budget is 3 ms of CPU: the median, so that a busy machine does not decide. Prints the figure.
TEST(Sample, CostOfEightRanksAndSixteenWorkers) {
  std::vector<pid_t> ranks;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  for (int i = 0; i < 8; ++i) {
    const pid_t rank = fork();
    if (rank == 0) {
      setpgid(0, 0);  // before there are workers: the group is killed as a whole
      for (int worker = 0; worker < 2; ++worker)
        if (fork() == 0) break;
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (write(ready[1], "x", 1) != 1) _exit(1);
      pause();
      _exit(0);
    }
    ranks.push_back(rank);
  }
  for (int i = 0; i < 24; ++i) {
    char byte;
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
  }
  std::vector<Process> processes;
  for (size_t i = 0; i < ranks.size(); ++i)
    processes.push_back({ranks[i], *process_start(ranks[i]), static_cast<int32_t>(i)});
  Sampler sampler;
  NodeHistory node;
  std::vector<int64_t> cost;
  for (int i = 1; i <= 31; ++i) {
    const int64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    const auto out = sampler.sample(processes, i * kSecond, node);
    cost.push_back(clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin);
    EXPECT_EQ(out.size(), 8u);
  }
  for (const pid_t rank : ranks) EXPECT_TRUE(process_alive(rank, 0));
  for (const pid_t rank : ranks) {
    kill(-rank, SIGKILL);
    waitpid(rank, nullptr, 0);
  }
  close(ready[0]);
  close(ready[1]);
  std::sort(cost.begin(), cost.end());
  printf("sample(): median %.2f ms, worst %.2f ms of CPU\n", static_cast<double>(cost[15]) / 1e6,
         static_cast<double>(cost.back()) / 1e6);
  RecordProperty("sample_cpu_us", static_cast<int>(cost[15] / 1000));
}

}  // namespace
}  // namespace stepscope::sampler
