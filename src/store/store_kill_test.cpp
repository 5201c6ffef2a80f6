// kill -9 of the process that writes, at random instants: what is read afterwards is the last whole
// commit, or the one that was being made. The seed is printed; STEPSCOPE_SEED repeats a run.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "store/history_fixture.h"
#include "store/network_copy.h"
#include "store/store.h"

namespace stepscope::store {
namespace {

using fixture::TemporaryFolder;

StepSample step_of(int32_t rank, int64_t number) {
  StepSample s;
  s.rank = rank;
  s.step = number;
  s.begin_ns = number * 1000;
  s.end_ns = s.begin_ns + 1000;
  s[Phase::kForward] = 1000;
  s.user_phase_ns = {{"augment", number}};
  return s;
}

// Commit k holds steps 0 to k * 5 - 1 of each of two ranks, and position k.
[[noreturn]] void write_for_ever(const std::string& folder, int pipe) {
  Result<Store> store = Store::create(folder);
  if (!store) _exit(1);
  RunHistory run;
  run.ranks.resize(2);
  run.ranks[1].rank = 1;
  for (int64_t commit = 1;; ++commit) {
    for (RankHistory& r : run.ranks)
      for (int i = 0; i < 5; ++i) r.add(step_of(r.rank, r.steps), run.settings);
    Batch batch;
    batch.positions = {{1, 2, static_cast<uint64_t>(commit), ""}};
    if (!store->commit(run, batch)) _exit(2);
    if (write(pipe, &commit, sizeof commit) != sizeof commit) _exit(3);
    if (commit % 50 == 0 && !store->finish(run, {})) _exit(4);
  }
}

// The number of commits that the killed child said were made.
int64_t run_and_kill(const std::string& folder, int64_t after_us) {
  int pipes[2];
  if (pipe(pipes) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    close(pipes[0]);
    write_for_ever(folder, pipes[1]);
  }
  close(pipes[1]);
  usleep(static_cast<useconds_t>(after_us));
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the writer ended by itself with " << WEXITSTATUS(status);
  int64_t commit = 0, last = 0;
  while (read(pipes[0], &commit, sizeof commit) == sizeof commit) last = commit;
  close(pipes[0]);
  return last;
}

int64_t expect_whole(const RunHistory& run, int64_t said, int64_t behind) {
  if (run.ranks.empty()) {
    EXPECT_LE(said, behind);
    return 0;
  }
  EXPECT_EQ(run.ranks.size(), 2u);
  const int64_t commits = run.ranks[0].steps / 5;
  EXPECT_GE(commits, said - behind);
  EXPECT_LE(commits, said + 1);
  for (const RankHistory& r : run.ranks) {
    EXPECT_EQ(r.steps, commits * 5);
    EXPECT_EQ(r.raw.size(), std::min<size_t>(static_cast<size_t>(r.steps), RankHistory::kMaxRaw));
    for (size_t i = 0; i < r.raw.size(); ++i) {
      const int64_t number = r.steps - static_cast<int64_t>(r.raw.size()) + static_cast<int64_t>(i);
      EXPECT_EQ(r.raw[i].step, number);
      EXPECT_EQ(r.raw[i].user_phase_ns, step_of(0, number).user_phase_ns);
    }
  }
  return commits;
}

TEST(StoreKill, ReadsTheLastWholeCommit) {
  const char* given = std::getenv("STEPSCOPE_SEED");
  const auto seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 15; ++round) {
    TemporaryFolder folder;
    const int64_t said =
        run_and_kill(folder.path, std::uniform_int_distribution<int64_t>(1, 200'000)(random));
    if (said == 0 && access((folder.path + "/run.db").c_str(), F_OK) != 0)
      continue;  // not even created
    const auto run = Store::read(folder.path);
    ASSERT_TRUE(run) << run.error().message;
    const int64_t commits = expect_whole(*run, said, 0);

    Result<Store> store = Store::open(folder.path);
    ASSERT_TRUE(store) << store.error().message;
    const auto loaded = store->load();
    ASSERT_TRUE(loaded) << loaded.error().message;
    EXPECT_EQ(fixture::difference(*run, *loaded), "");
    const auto positions = store->positions();
    ASSERT_TRUE(positions);
    EXPECT_EQ(positions->empty() ? 0 : positions->at(0).next_index, static_cast<uint64_t>(commits));
    ASSERT_TRUE(store->finish(*loaded, {}));
  }
}

TEST(StoreKill, OnANetworkFileSystemTheRunFolderAlwaysHoldsAWholeDatabase) {
  TemporaryFolder temporary;
  const char* old = std::getenv("TMPDIR");
  const std::string restore = old == nullptr ? "" : old;
  network_policy() = {[](const std::string&) { return true; }, 0};
  std::mt19937_64 random(7);
  for (int round = 0; round < 10; ++round) {
    TemporaryFolder folder;
    setenv("TMPDIR", temporary.path.c_str(), 1);
    const int64_t said =
        run_and_kill(folder.path, std::uniform_int_distribution<int64_t>(1, 200'000)(random));
    if (access((folder.path + "/run.db").c_str(), F_OK) == 0) {
      const auto near = Store::read(folder.path);  // the live one, in TMPDIR
      ASSERT_TRUE(near) << near.error().message;
      expect_whole(*near, said, 0);
      setenv("TMPDIR", folder.path.c_str(), 1);  // as from another machine: only the copy is there
      const auto far = Store::read(folder.path);
      ASSERT_TRUE(far) << far.error().message;
      expect_whole(*far, said, 1);
    }
    setenv("TMPDIR", restore.c_str(), 1);
    if (old == nullptr) unsetenv("TMPDIR");
  }
  network_policy() = {};
}

}  // namespace
}  // namespace stepscope::store
