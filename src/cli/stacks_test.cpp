#include "cli/stacks.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>

#include "base/clock.h"

namespace stepscope::cli {
namespace {

TEST(Stacks, TheMainThreadsFramesInnermostFirst) {
  EXPECT_EQ(
      frames_of(
          "Process 7: python train.py\nPython v3.11.2 (/usr/bin/python3.11)\n\n"
          "Thread 9 (idle): \"pin\"\n    wait (threading.py:320)\n"
          "Thread 7 (active): \"MainThread\"\n    read (data.py:20)\n    next \x1b[31m(l.py:5)\n"
          "Thread 8 (idle): \"other\"\n    run (threading.py:975)\n"),
      "read (data.py:20) < next ?[31m(l.py:5)");
  EXPECT_EQ(frames_of("Thread 7 (active)\n    a (b.py:1)\n"), "a (b.py:1)");
  EXPECT_EQ(frames_of("Error: Permission denied\n"), "");
}

RunHistory stuck_run() {
  RunHistory run;
  run.live = true;
  RankHistory& rank = run.ranks.emplace_back();
  rank.rank = 3;
  rank.pid = 77;
  rank.doing = Doing{"input", 12, 3600'000'000'000, true};
  return run;
}

// A py-spy that answers with its arguments.
class FakePySpy {
 public:
  explicit FakePySpy(const std::string& text) {
    char name[] = "/tmp/stepscope-stacks-XXXXXX";
    folder_ = mkdtemp(name);
    std::ofstream(folder_ + "/py-spy") << "#!/bin/sh\n" << text;
    (void)!::system(("chmod 755 " + folder_ + "/py-spy").c_str());
    ::setenv("PATH", (folder_ + ":/usr/bin:/bin").c_str(), 1);
  }
  ~FakePySpy() {
    ::setenv("PATH", before_.c_str(), 1);
    ::unlink((folder_ + "/py-spy").c_str());
    ::rmdir(folder_.c_str());
  }

 private:
  std::string folder_, before_ = ::getenv("PATH");
};

std::optional<std::string> first_word(Stacks& stacks, const RunHistory& run, int times) {
  for (int i = 0; i < times; ++i) {
    if (auto said = stacks.tick(run, monotonic_ns())) return said;
    ::usleep(10'000);
  }
  return std::nullopt;
}

TEST(Stacks, AskedOnceForALateRankAndAgainWhenItIsStuckAnew) {
  const FakePySpy py_spy("echo 'Thread 1: \"MainThread\"'; echo \"    got ($*)\"\n");
  Stacks stacks;
  RunHistory run = stuck_run();
  EXPECT_EQ(first_word(stacks, run, 1000),
            "rank 3, stuck at step 12, stands in got (dump --nonblocking --pid 77)");
  EXPECT_EQ(first_word(stacks, run, 5), std::nullopt);
  run.ranks[0].doing->for_ns = 0;  // it moves
  EXPECT_EQ(first_word(stacks, run, 1), std::nullopt);
  run.ranks[0].doing->for_ns = 3600'000'000'000;
  EXPECT_NE(first_word(stacks, run, 1000), std::nullopt);
}

TEST(Stacks, OneThatHangsHoldsNobodyUp) {
  const FakePySpy py_spy("exec sleep 60\n");
  Stacks stacks;
  const RunHistory run = stuck_run();
  EXPECT_EQ(stacks.tick(run, 0), std::nullopt);
  EXPECT_EQ(stacks.tick(run, Stacks::kTimeNs + 1), std::nullopt);  // ended
  EXPECT_EQ(first_word(stacks, run, 3), std::nullopt);
}

TEST(Stacks, WithoutPySpyNothingIsSaid) {
  const FakePySpy none("exit 1\n");
  ::setenv("PATH", "/nonexistent", 1);
  Stacks stacks;
  EXPECT_EQ(first_word(stacks, stuck_run(), 5), std::nullopt);
}

}  // namespace
}  // namespace stepscope::cli
