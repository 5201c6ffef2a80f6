#include "cli/process_tree.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace stepscope::cli {
namespace {

// A process that forks twice into a session of its own, as daemons do; its pid comes by the pipe.
TEST(ProcessTree, NobodyLeavesIt) {
  const pid_t apart = ::fork();  // the test's own process does not become a reaper
  ASSERT_GE(apart, 0);
  if (apart == 0) {
    become_reaper();
    int pipe[2];
    if (::pipe(pipe) != 0) ::_exit(2);
    if (::fork() == 0) {
      ::setsid();
      if (::fork() == 0) {
        ::signal(SIGTERM, SIG_IGN);
        const pid_t self = ::getpid();
        (void)!::write(pipe[1], &self, sizeof self);
        ::pause();
      }
      ::_exit(0);
    }
    pid_t daemon = 0;
    if (::read(pipe[0], &daemon, sizeof daemon) != sizeof daemon) ::_exit(3);
    end_descendants();
    ::_exit(::kill(daemon, 0) == 0 || !descendants(::getpid()).empty() ? 4 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(apart, &status, 0), apart);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(ProcessTree, DescendantsByParent) {
  const std::string root = STEPSCOPE_SOURCE_DIR "/tests/fakeroot/v2";
  EXPECT_TRUE(descendants(999'999, root).empty());
  EXPECT_EQ(descendants(100, root), (std::vector<pid_t>{110, 111}));  // 112 is a zombie
}

}  // namespace
}  // namespace stepscope::cli
