#include "cli/segment_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/file.h"
#include "cli/identity.h"
#include "sampler/sampler.h"

namespace stepscope::cli {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

Member me(const std::string& code = "") {
  Member member;
  member.pid = ::getpid();
  member.start = sampler::process_start(::getpid()).value_or(0);
  member.code = code;
  return member;
}

RunInfo some_run() {
  RunInfo info;
  info.folder = "/x";
  info.id = "a";
  return info;
}

Member gone() {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  Member member;
  member.start = sampler::process_start(pid).value_or(1);
  ::waitpid(pid, nullptr, 0);
  member.pid = pid;
  return member;
}

class SegmentFolderTest : public testing::Test {
 protected:
  void SetUp() override { key_ = "test-" + std::to_string(random_number()); }
  void TearDown() override { remove_segment_folder(folder()); }
  std::string folder() const { return segment_root() + "/" + key_; }
  Result<Joined> join() { return join_segment_folder(key_, kSecond, &remove_segment_folder); }
  std::string key_;
};

TEST(RunInfo, RoundTrip) {
  RunInfo info{.folder = "/a b/c\nd",
               .id = "x=y",
               .name = "n\\n",
               .command = {"python", "a \"b\".py", ""},
               .settings = {{"warmup_steps", "3"}},
               .started_wall_ns = 5,
               .started_mono_ns = 6,
               .owner_pid = 7,
               .owner_start = 8,
               .pid_namespace = 9,
               .notices = {"one", "two"}};
  const auto read = parse_run_info(format_run_info(info));
  ASSERT_TRUE(read);
  EXPECT_EQ(format_run_info(*read), format_run_info(info));
  EXPECT_EQ(read->command, info.command);
  EXPECT_EQ(read->settings, info.settings);
}

TEST(RunInfo, HostileBytesAreNoRun) {
  EXPECT_FALSE(parse_run_info(""));
  EXPECT_FALSE(parse_run_info("folder=/x"));
  const auto odd =
      parse_run_info("folder=\nid=a\ncommand=[1,{}\nowner_pid=99999999999999\nsettings=3");
  ASSERT_TRUE(odd);
  EXPECT_TRUE(odd->command.empty());
  EXPECT_EQ(odd->owner_pid, 0);
}

TEST(Member, RoundTripAndCodes) {
  Member member = me("signal 15");
  member.rank = 3;
  member.child_pid = 12;
  const auto read = parse_member(format_member(member));
  ASSERT_TRUE(read);
  EXPECT_EQ(format_member(*read), format_member(member));
  EXPECT_EQ(exit_code(*read), 143);
  EXPECT_EQ(exit_code(me("0")), 0);
  EXPECT_EQ(exit_code(me("255")), 255);
  for (const char* bad : {"", "256", "-1", "signal", "signal x", "x"})
    EXPECT_FALSE(exit_code(me(bad))) << bad;
  EXPECT_FALSE(parse_member("pid=1\nrank=1\n"));
  std::string torn = format_member(member);
  torn[5] ^= 1;
  EXPECT_FALSE(parse_member(torn));
}

TEST(Member, ExitCodeOfTheRunIsTheFirstThatFailed) {
  Member zero = me("0"), one = me("3"), two = me("signal 9");
  zero.rank = 0;
  one.rank = 1;
  two.rank = 2;
  EXPECT_EQ(exit_code({two, one, zero}), 3);
  EXPECT_EQ(exit_code({zero}), 0);
  EXPECT_FALSE(exit_code({zero, me("")}));
  EXPECT_FALSE(exit_code(std::vector<Member>{}));
}

TEST(Member, AliveMeansSupervisorOrChild) {
  EXPECT_TRUE(is_alive(me()));
  EXPECT_FALSE(is_alive(me("0")));
  Member dead = gone();
  EXPECT_FALSE(is_alive(dead));
  dead.child_pid = ::getpid();
  dead.child_start = me().start;
  EXPECT_TRUE(is_alive(dead));  // a killed supervisor does not end the training
  dead.child_start += 1;        // the pid was given to another process
  EXPECT_FALSE(is_alive(dead));
}

TEST_F(SegmentFolderTest, TheFirstFoundsTheOthersJoin) {
  auto first = join();
  ASSERT_TRUE(first);
  EXPECT_TRUE(first->owner);
  ASSERT_TRUE(write_run_info(folder(), some_run()));
  ASSERT_TRUE(write_member(folder(), me()));
  first->lock.reset();
  const auto second = join();
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->owner);
  EXPECT_EQ(second->folder, first->folder);
}

TEST_F(SegmentFolderTest, ARunWhoseProcessesEndedIsNotJoined) {
  {
    const auto first = join();
    ASSERT_TRUE(write_run_info(folder(), some_run()));
    ASSERT_TRUE(write_member(folder(), me("0")));
  }
  const auto second = join();  // finish() removes the old one
  ASSERT_TRUE(second);
  EXPECT_TRUE(second->owner);
}

TEST_F(SegmentFolderTest, AnEndingRunIsWaitedForAndNotJoined) {
  {
    const auto first = join();
    ASSERT_TRUE(write_run_info(folder(), some_run()));
    ASSERT_TRUE(write_member(folder(), me()));
  }
  ASSERT_TRUE(mark_ended(folder()));
  const Fd agent = take_agent_lock(folder());
  ASSERT_TRUE(agent);
  EXPECT_FALSE(join_segment_folder(key_, kSecond / 10, &remove_segment_folder));
  EXPECT_TRUE(exists(folder()));  // not taken from under a living agent
}

TEST_F(SegmentFolderTest, ALockOnARemovedFolderIsNone) {
  {
    const auto first = join();
  }
  Fd lock = lock_folder(folder(), 0);
  ASSERT_TRUE(lock);
  EXPECT_FALSE(lock_folder(folder(), 0));
  EXPECT_EQ(errno, EWOULDBLOCK);
  lock.reset();
  remove_segment_folder(folder());
  EXPECT_FALSE(lock_folder(folder(), 0));
  EXPECT_EQ(errno, ENOENT);
}

TEST_F(SegmentFolderTest, OneAgentAtATimeAndItIsNamed) {
  {
    const auto first = join();
  }
  EXPECT_FALSE(agent_alive(folder()));
  {
    const Fd agent = take_agent_lock(folder());
    ASSERT_TRUE(agent);
    EXPECT_TRUE(agent_alive(folder()));
    EXPECT_EQ(agent_pid(folder()), ::getpid());
    EXPECT_FALSE(take_agent_lock(folder()));
  }
  EXPECT_FALSE(agent_alive(folder()));
  EXPECT_EQ(agent_pid(folder()), 0);
}

TEST_F(SegmentFolderTest, GarbageIsNoMember) {
  {
    const auto first = join();
  }
  ASSERT_TRUE(write_file(folder() + "/member-1", "\xff\xfe garbage"));
  ASSERT_TRUE(write_file(folder() + "/seg-1-2", std::string(300, '\xff')));
  EXPECT_TRUE(read_members(folder()).empty());
  EXPECT_FALSE(any_process_alive(folder()));
}

}  // namespace
}  // namespace stepscope::cli
