// Folders as they are found: with links, pipes, holes, nothing in them. Figures are compared with
// each other, never with a constant.
#include "probe/storage.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/clock.h"

namespace stepscope::probe {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "stepscope-probe-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
    fs::create_directory(path_ + "/data");
  }
  ~Folder() { fs::remove_all(path_); }
  std::string data() const { return path_ + "/data"; }
  const std::string& path() const { return path_; }
  void add(const std::string& name, size_t bytes) const {
    fs::create_directories(fs::path(data() + "/" + name).parent_path());
    std::ofstream(data() + "/" + name) << std::string(bytes, 'x');
  }

 private:
  std::string path_;
};

int64_t never() { return INT64_MAX; }

TEST(Scan, CountsWhatIsThereAndOpensNoPipe) {
  const Folder folder;
  for (int i = 0; i < 20; ++i) folder.add("a/" + std::to_string(i), 100);
  folder.add("empty", 0);
  fs::create_directory(folder.data() + "/nothing");
  fs::create_directory_symlink("..", folder.data() + "/a/up");  // a loop
  fs::create_symlink("0", folder.data() + "/a/link");
  fs::create_symlink("gone", folder.data() + "/dangling");
  fs::create_symlink("self", folder.data() + "/self");
  ASSERT_EQ(::mkfifo((folder.data() + "/pipe").c_str(), 0600), 0);
  const auto found = scan(folder.data(), never());
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->complete);
  EXPECT_EQ(found->files, 22);
  EXPECT_EQ(found->bytes, 2100);
  EXPECT_EQ(found->folders, 3);
  EXPECT_EQ(found->links, 4);
  EXPECT_EQ(found->special, 1);
  EXPECT_EQ(found->unreadable, 2);
  EXPECT_EQ(found->empty_files, 1);
}

TEST(Scan, TheSampleIsBoundedAndFromAllOfIt) {
  const Folder folder;
  for (int i = 0; i < 3 * static_cast<int>(kSample); ++i) folder.add(std::to_string(i), 1);
  const auto found = scan(folder.data(), never());
  ASSERT_TRUE(found);
  ASSERT_EQ(found->sample.size(), kSample);
  EXPECT_EQ(found->neighbours.size(), kSample);
  EXPECT_GT(found->sample.back().place, 2 * static_cast<int64_t>(kSample));
  const auto late = scan(folder.data(), monotonic_ns());
  ASSERT_TRUE(late);
  EXPECT_FALSE(late->complete);
  EXPECT_GT(late->files, 0);
}

TEST(Scan, WhatIsNoDataIsAnError) {
  const Folder folder;
  EXPECT_FALSE(scan(folder.path() + "/none", never()));
  EXPECT_FALSE(scan("/dev/null", never()));
}

TEST(Storage, ReadsEveryByteAndLeavesTheFolderAsItWas) {
  const Folder folder;
  for (int i = 0; i < 40; ++i) folder.add(std::to_string(i % 4) + "/" + std::to_string(i), 5000);
  const auto time = fs::last_write_time(folder.data());
  const auto measured = measure({.path = folder.data(), .scratch = {folder.path()}, .seconds = 10});
  ASSERT_TRUE(measured);
  for (const Reading* reading :
       {&measured->cold_random, &measured->cold_in_order, &measured->warm_random}) {
    EXPECT_EQ(reading->not_measured, "");
    EXPECT_EQ(reading->files, 40);
    EXPECT_EQ(reading->bytes, 40 * 5000);
    EXPECT_EQ(reading->failed, 0);
    EXPECT_GT(reading->seconds, 0);
    EXPECT_GE(reading->open_us_p95, reading->open_us_p50);
  }
  EXPECT_FALSE(measured->warm_random.cold);
  EXPECT_EQ(measured->size_p50, 5000);
  if (measured->packed.not_measured.empty()) {  // no O_TMPFILE there
    EXPECT_EQ(measured->packed.bytes, 40 * 5000);
    EXPECT_EQ(measured->packed_where, folder.path());
    EXPECT_FALSE(measured->packed_elsewhere);
    EXPECT_NE(measured->packing_saves.has_value(), !measured->not_compared.empty());
  }
  EXPECT_EQ(fs::last_write_time(folder.data()), time);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
}

TEST(Storage, NothingToReadIsSaid) {
  const Folder folder;
  const auto empty = measure({.path = folder.data(), .scratch = {folder.path()}, .seconds = 1});
  ASSERT_TRUE(empty);
  EXPECT_EQ(empty->cold_random.not_measured, "there is no file");
  EXPECT_EQ(empty->not_compared, "there is no file");
  EXPECT_FALSE(empty->packing_saves);
  for (int i = 0; i < 10; ++i) folder.add(std::to_string(i), 0);
  const auto hollow = measure({.path = folder.data(), .scratch = {folder.path()}, .seconds = 1});
  ASSERT_TRUE(hollow);
  EXPECT_FALSE(hollow->packing_saves);
  EXPECT_NE(hollow->not_compared, "");
}

TEST(Storage, ThePackedFileNeverLiesBelowTheData) {
  const Folder folder;
  for (int i = 0; i < 10; ++i) folder.add("a/" + std::to_string(i), 1000);
  const auto measured = measure(
      {.path = folder.data(), .scratch = {folder.data(), folder.data() + "/a"}, .seconds = 1});
  ASSERT_TRUE(measured);
  EXPECT_EQ(measured->packed_where, "");
  EXPECT_EQ(measured->packed.not_measured, "no folder with room for a temporary file");
}

TEST(Storage, AFileThatCannotBeReadIsCounted) {
  if (::geteuid() == 0) GTEST_SKIP() << "needs a user other than root";
  const Folder folder;
  for (int i = 0; i < 10; ++i) folder.add(std::to_string(i), 1000);
  fs::permissions(folder.data() + "/3", fs::perms::none);
  const auto measured = measure({.path = folder.data(), .scratch = {}, .seconds = 1});
  ASSERT_TRUE(measured);
  EXPECT_EQ(measured->cold_random.failed, 1);
  EXPECT_EQ(measured->cold_random.files, 9);
}

}  // namespace
}  // namespace stepscope::probe
