#include "base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

namespace stepscope {
namespace {

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/stepscope-file-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  void TearDown() override { remove_tree(folder_); }
  std::string folder_;
};

TEST_F(FileTest, WritesAndReadsWhole) {
  const std::string path = folder_ + "/a";
  ASSERT_TRUE(write_file(path, "one", 0600));
  ASSERT_TRUE(write_file(path, "two\n", 0600, true));
  const auto content = read_file(path);
  ASSERT_TRUE(content);
  EXPECT_EQ(*content, "two\n");
  EXPECT_EQ(list_folder(folder_), std::vector<std::string>{"a"});  // no temporary file is left
  struct stat st;
  ASSERT_EQ(::stat(path.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777u, 0600u);
}

TEST_F(FileTest, ReadsAtMostWhatIsAllowed) {
  ASSERT_TRUE(write_file(folder_ + "/a", std::string(100'000, 'x')));
  EXPECT_EQ(read_file(folder_ + "/a", 50'000)->size(), 50'000u);
}

TEST_F(FileTest, ErrorsNameThePathAndTheReason) {
  const auto missing = read_file(folder_ + "/none");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, "cannot read " + folder_ + "/none: No such file or directory");
  const Status written = write_file(folder_ + "/none/a", "x");
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message.find("none/a"), std::string::npos);
}

TEST_F(FileTest, DoesNotWriteThroughALinkLaidInItsWay) {
  ASSERT_TRUE(write_file(folder_ + "/victim", "safe"));
  const std::string temporary = folder_ + "/a.tmp-" + std::to_string(::getpid());
  ASSERT_EQ(::symlink((folder_ + "/victim").c_str(), temporary.c_str()), 0);
  EXPECT_FALSE(write_file(folder_ + "/a", "x"));
  EXPECT_EQ(*read_file(folder_ + "/victim"), "safe");
}

TEST_F(FileTest, MakesFoldersAndRemovesTreesWithoutFollowingLinks) {
  ASSERT_TRUE(make_folders(folder_ + "/x/y/z"));
  ASSERT_TRUE(make_folders(folder_ + "/x/y/z"));
  ASSERT_TRUE(write_file(folder_ + "/kept", "k"));
  ASSERT_EQ(::symlink(folder_.c_str(), (folder_ + "/x/loop").c_str()), 0);
  remove_tree(folder_ + "/x");
  EXPECT_FALSE(exists(folder_ + "/x"));
  EXPECT_TRUE(exists(folder_ + "/kept"));
  EXPECT_FALSE(make_folders(folder_ + "/kept/below"));
}

TEST(AbsolutePath, IsNormal) {
  const std::string here = std::filesystem::current_path().string();
  EXPECT_EQ(absolute_path("a/../b/"), here + "/b");
  EXPECT_EQ(absolute_path("."), here);
  EXPECT_EQ(absolute_path("/"), "/");
}

}  // namespace
}  // namespace stepscope
