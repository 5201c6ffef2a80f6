#include "cli/run_folder.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace stepscope::cli {
namespace {

TEST(ScriptStem, FindsTheScriptBehindAnyLauncher) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"python", "train.py"}, "train"},
      {{"python3.11", "-u", "src/fine-tune.py", "--lr", "1"}, "fine-tune"},
      {{"python", "-m", "pkg.train"}, "train"},
      {{"/opt/bin/python", "-m", "torch.distributed.run", "--nproc-per-node", "2", "a.py"}, "a"},
      {{"torchrun", "--nproc-per-node", "2", "train.py"}, "train"},
      {{"torchrun", "-m", "pkg.sub.main"}, "main"},
      {{"accelerate", "launch", "--num_processes", "1", "x/run_glue.py"}, "run_glue"},
      {{"python", "-c", "print(1)", "x.py"}, "python"},
      {{"bash", "job.sh"}, "job"},
      {{"./a.out"}, "a.out"},
      {{"/bin/true"}, "true"},
      {{"we ird\n/.hidden"}, "run.hidden"},
      {{"-x"}, "run-x"},
      {{}, "run"},
  };
  for (const auto& [command, stem] : cases) EXPECT_EQ(script_stem(command), stem);
  EXPECT_LE(script_stem({std::string(500, 'x') + ".py"}).size(), 64u);
}

TEST(CheckName, AFolderNameAndNothingElse) {
  for (const char* fine : {"a", "my run", "<b>", "r\xC3\xA9sum\xC3\xA9", "-x"})
    EXPECT_TRUE(check_name(fine)) << fine;
  for (const std::string bad : {"", ".", "..", "a/b", "a\nb", "\x7f"})
    EXPECT_FALSE(check_name(bad)) << bad;
  EXPECT_FALSE(check_name(std::string(201, 'x')));
}

class RunFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/stepscope-folder-XXXXXX";
    cwd_ = ::mkdtemp(name);
    request_.cwd = cwd_;
    request_.name = "n";
    request_.environment = {{"TMPDIR", cwd_ + "/tmp"}};
    ASSERT_TRUE(make_folders(cwd_ + "/tmp"));
  }
  void TearDown() override { remove_tree(cwd_); }
  std::string cwd_;
  FolderRequest request_;
};

TEST_F(RunFolderTest, ATakenNameGetsANumber) {
  for (const std::string name : {"n", "n-2", "n-3"}) {
    const auto folder = make_run_folder(request_);
    ASSERT_TRUE(folder);
    EXPECT_EQ(folder->name, name);
    EXPECT_EQ(folder->path, cwd_ + "/stepscope-runs/" + name);
    EXPECT_TRUE(folder->notices.empty());
    EXPECT_TRUE(list_folder(folder->path).empty());
  }
}

TEST_F(RunFolderTest, AnExplicitFolderWithARunIsRefused) {
  request_.run_dir = cwd_ + "/there";
  ASSERT_TRUE(make_run_folder(request_));
  ASSERT_TRUE(make_run_folder(request_));  // it is there, but holds no run
  ASSERT_TRUE(write_file(request_.run_dir + "/summary.json", "{}"));
  ASSERT_TRUE(write_file(request_.run_dir + "/mine.txt", "x"));
  const auto refused = make_run_folder(request_);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().hint.find("--overwrite"), std::string::npos);
  request_.overwrite = true;
  ASSERT_TRUE(make_run_folder(request_));
  EXPECT_EQ(list_folder(request_.run_dir), std::vector<std::string>{"mine.txt"});
}

TEST_F(RunFolderTest, WhereNothingCanBeWrittenTheNextPlaceIsTaken) {
  ASSERT_TRUE(write_file(cwd_ + "/stepscope-runs", "a file in the way"));
  const auto folder = make_run_folder(request_);
  ASSERT_TRUE(folder);
  EXPECT_EQ(folder->path, fallback_places(request_.environment)[0] + "/n");
  ASSERT_EQ(folder->notices.size(), 1u);
  EXPECT_NE(folder->notices[0].find(folder->path), std::string::npos);
}

TEST_F(RunFolderTest, APlaceOfAnotherUserIsNotUsed) {
  ASSERT_TRUE(write_file(cwd_ + "/stepscope-runs", "a file in the way"));
  const std::string place = fallback_places(request_.environment)[0];
  ASSERT_EQ(::symlink("/tmp", place.c_str()), 0);
  const auto folder = make_run_folder(request_);
  ASSERT_TRUE(folder);
  EXPECT_FALSE(folder->path.starts_with(place));
  remove_tree(folder->path);
}

TEST(FallbackPlaces, TmpdirFirstAndEachOnce) {
  EXPECT_EQ(fallback_places({{"TMPDIR", "/tmp"}}).size(), 2u);
  EXPECT_EQ(fallback_places({}).size(), 2u);
  const auto places = fallback_places({{"TMPDIR", "/scratch/"}});
  ASSERT_EQ(places.size(), 3u);
  EXPECT_TRUE(places[0].starts_with("/scratch/stepscope-runs-"));
}

}  // namespace
}  // namespace stepscope::cli
