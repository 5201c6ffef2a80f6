#include "store/network_copy.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "store/history_fixture.h"
#include "store/store.h"

namespace stepscope::store {
namespace {

using fixture::Random;
using fixture::TemporaryFolder;
namespace fs = std::filesystem;

class NetworkCopy : public testing::Test {
 protected:
  void SetUp() override {
    const char* old = std::getenv("TMPDIR");
    if (old != nullptr) before_ = old;
    setenv("TMPDIR", temporary_.path.c_str(), 1);
    network_policy() = {[](const std::string&) { return true; }, 60'000'000'000};
  }
  void TearDown() override {
    network_policy() = {};
    before_.empty() ? unsetenv("TMPDIR") : setenv("TMPDIR", before_.c_str(), 1);
  }
  // All files below the private folders of TMPDIR.
  std::set<std::string> live_files() {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(temporary_.path))
      if (entry.is_regular_file()) names.insert(entry.path().filename());
    return names;
  }
  std::set<std::string> final_files() {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path))
      names.insert(entry.path().filename());
    return names;
  }
  TemporaryFolder folder_, temporary_;
  std::string before_;
};

TEST_F(NetworkCopy, WritesInTmpdirAndEndsWithOneFileInTheRunFolder) {
  RunHistory run = Random(1).run(2, 100);
  run.folder = folder_.path;
  {
    Result<Store> store = Store::create(folder_.path);
    ASSERT_TRUE(store) << store.error().message;
    ASSERT_TRUE(store->commit(run, {}));
    EXPECT_TRUE(live_files().contains("run.db-wal"));
    EXPECT_EQ(final_files(), std::set<std::string>{"run.db"});  // the first copy is made at once
    const auto copied = fs::last_write_time(folder_.path + "/run.db");
    run.ranks.pop_back();
    ASSERT_TRUE(store->commit(run, {}));
    EXPECT_EQ(fs::last_write_time(folder_.path + "/run.db"), copied);  // the next one is not due
    EXPECT_EQ(fixture::difference(run, *Store::read(folder_.path)), "");
    ASSERT_TRUE(store->finish(run, {}));
  }
  EXPECT_TRUE(live_files().empty());
  EXPECT_EQ(final_files(), std::set<std::string>{"run.db"});
  run.live = false;
  const auto read = Store::read(folder_.path);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(fixture::difference(run, *read), "");
}

TEST_F(NetworkCopy, GoesOnFromTheCopyWhenTheLiveOneIsGone) {
  RunHistory run = Random(2).run(1, 100);
  run.folder = folder_.path;
  {
    Result<Store> store = Store::create(folder_.path);
    ASSERT_TRUE(store) << store.error().message;
    ASSERT_TRUE(store->commit(run, {}));
  }
  for (const auto& entry : fs::directory_iterator(temporary_.path)) fs::remove_all(entry.path());
  Result<Store> store = Store::open(folder_.path);
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_EQ(fixture::difference(run, *store->load()), "");
  ASSERT_TRUE(store->commit(run, {}));
}

TEST_F(NetworkCopy, AFolderThatIsNotOursIsNotUsed) {
  const std::string root = temporary_.path + "/stepscope-" + std::to_string(getuid());
  fs::create_directory(root);
  chmod(root.c_str(), 0777);
  const auto placement = place(folder_.path);
  ASSERT_TRUE(placement);
  EXPECT_NE(placement->live_path.rfind(temporary_.path, 0), 0u) << placement->live_path;
  remove_live(*placement);
}

TEST_F(NetworkCopy, ACopyThatFailsIsSaidAtTheEndAndTheLiveOneStays) {
  RunHistory run = Random(3).run(1, 10);
  run.folder = folder_.path;
  Result<Store> store = Store::create(folder_.path);
  ASSERT_TRUE(store) << store.error().message;
  fs::remove_all(folder_.path);
  std::ofstream(folder_.path) << "no folder any more";
  ASSERT_TRUE(store->commit(run, {}));
  const Status finished = store->finish(run, {});
  ASSERT_FALSE(finished);
  EXPECT_NE(finished.error().message.find(folder_.path), std::string::npos)
      << finished.error().message;
  EXPECT_FALSE(live_files().empty());
  fs::remove(folder_.path);
}

TEST(NetworkFileSystem, LocalOnesAreLocal) {
  EXPECT_FALSE(is_network_file_system("/proc"));
  EXPECT_FALSE(is_network_file_system("/dev/shm"));
  EXPECT_FALSE(is_network_file_system("/nonexistent"));
}

}  // namespace
}  // namespace stepscope::store
