// What must fail, and how: the error names the file, and the file is left as it was.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "store/database.h"
#include "store/history_fixture.h"
#include "store/store.h"

namespace stepscope::store {
namespace {

using fixture::expect_same;
using fixture::files_in;
using fixture::Random;
using fixture::TemporaryFolder;
namespace fs = std::filesystem;

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(StoreErrors, GarbageIsNamedAndLeftAlone) {
  TemporaryFolder folder;
  const std::string path = folder.path + "/run.db", garbage(5000, 'x');
  std::ofstream(path) << garbage;
  for (const std::string& message :
       {Store::read(folder.path).error().message, Store::open(folder.path).error().message}) {
    EXPECT_NE(message.find(path), std::string::npos) << message;
    EXPECT_NE(message.find("not a database"), std::string::npos) << message;
  }
  EXPECT_NE(Store::read(folder.path).error().hint.find("mv " + path + " "), std::string::npos);
  EXPECT_EQ(slurp(path), garbage);
  EXPECT_EQ(files_in(folder.path), std::set<std::string>{"run.db"});
}

TEST(StoreErrors, EveryTruncationIsReadOrRefused) {
  TemporaryFolder folder;
  RunHistory run = Random(8).run(2, 300);
  {
    Result<Store> store = Store::create(folder.path);
    ASSERT_TRUE(store) << store.error().message;
    ASSERT_TRUE(store->finish(run, {}));
  }
  const std::string path = folder.path + "/run.db";
  const auto whole = fs::file_size(path);
  for (auto size = whole - 1; size > 512; size = size * 3 / 4) {
    fs::resize_file(path, size);
    const auto result = Store::read(folder.path);
    ASSERT_FALSE(result) << size << " of " << whole << " bytes";
    EXPECT_NE(result.error().message.find(path), std::string::npos);
    EXPECT_EQ(fs::file_size(path), size);
  }
}

TEST(StoreErrors, FlippedBytesNeverCrash) {
  TemporaryFolder folder;
  RunHistory run = Random(9).run(1, 100);
  {
    Result<Store> store = Store::create(folder.path);
    ASSERT_TRUE(store) << store.error().message;
    ASSERT_TRUE(store->finish(run, {}));
  }
  const std::string path = folder.path + "/run.db", whole = slurp(path);
  Random random(10);
  for (int i = 0; i < 200; ++i) {
    std::string bytes = whole;
    for (int k = 0; k < 20; ++k)
      bytes[static_cast<size_t>(random.number(static_cast<int64_t>(bytes.size()) - 1))] =
          static_cast<char>(random.number(255));
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    (void)Store::read(folder.path);
  }
}

TEST(StoreErrors, ADatabaseOfANewerOrAnotherProgramIsRefused) {
  TemporaryFolder folder;
  {
    ASSERT_TRUE(Store::create(folder.path));
  }
  {
    auto db = Database::open(folder.path + "/run.db", Database::Mode::kReadWrite);
    ASSERT_TRUE(db->run("PRAGMA user_version = 9"));
  }
  EXPECT_NE(Store::read(folder.path).error().message.find("schema 9"), std::string::npos);
  EXPECT_NE(Store::open(folder.path).error().message.find("newer"), std::string::npos);
  {
    auto db = Database::open(folder.path + "/run.db", Database::Mode::kReadWrite);
    ASSERT_TRUE(db->run("PRAGMA application_id = 5"));
  }
  EXPECT_NE(Store::read(folder.path).error().message.find("not one of stepscope"),
            std::string::npos);
}

TEST(StoreErrors, MissingAndUnwritableFolders) {
  EXPECT_NE(Store::create("/nonexistent/run").error().message.find("/nonexistent/run/run.db"),
            std::string::npos);
  EXPECT_NE(Store::read("/nonexistent/run").error().message.find("No such file"),
            std::string::npos);
  EXPECT_EQ(Store::read("/nonexistent/run").error().hint, "stepscope runs");
  const auto in_proc = Store::create("/proc/self");
  ASSERT_FALSE(in_proc);
  EXPECT_NE(in_proc.error().hint.find("--run-dir"), std::string::npos) << in_proc.error().message;
}

// A disk that fills, by the limit on file sizes: a commit fails whole, names the file, and the next
// one makes it good.
TEST(StoreErrors, AFullDiskLosesNothingOnceThereIsRoomAgain) {
  TemporaryFolder folder;
  signal(SIGXFSZ, SIG_IGN);
  Random random(12);
  RunHistory run = random.run(2, 100);
  run.folder = folder.path;
  Result<Store> store = Store::create(folder.path);
  ASSERT_TRUE(store) << store.error().message;
  ASSERT_TRUE(store->commit(run, {}));
  const RunHistory before = run;

  rlimit old;
  getrlimit(RLIMIT_FSIZE, &old);
  const rlimit tight{fs::file_size(folder.path + "/run.db-wal") + 8192, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &tight);
  for (int attempt = 0; attempt < 3; ++attempt) {
    for (RankHistory& r : run.ranks)
      for (int i = 0; i < 200; ++i) {
        const auto step = static_cast<int64_t>(r.raw.size());
        r.raw.push_back(random.step(r.rank, step, step * 100'000'000));
      }
    const Occurrence o{0, OccurrenceKind::kCheckpoint, attempt, 0, 100 + attempt};
    run.ranks[0].add(o);
    const Status stored = store->commit(run, {});
    ASSERT_FALSE(stored);
    EXPECT_NE(stored.error().message.find(folder.path + "/run.db"), std::string::npos)
        << stored.error().message;
    EXPECT_FALSE(stored.error().hint.empty());
    expect_same(before, Store::read(folder.path));
  }
  setrlimit(RLIMIT_FSIZE, &old);
  signal(SIGXFSZ, SIG_DFL);
  const Status stored = store->commit(run, {});
  ASSERT_TRUE(stored) << stored.error().message;
  expect_same(run, Store::read(folder.path));
}

}  // namespace
}  // namespace stepscope::store
