#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/phase.h"
#include "ring/reader.h"
#include "ring/test_folder.h"
#include "stepscope/recorder.h"

namespace stepscope {
namespace {

// In a process of its own: the environment and the one recorder are a process's.
int in_child(const std::function<int()>& body) {
  const pid_t pid = fork();
  if (pid == 0) _exit(body());
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::vector<ring::EventValue> events(const ring::TestFolder& folder) {
  auto reader = ring::Reader::open(folder.only_file());
  EXPECT_TRUE(reader);
  std::vector<ring::EventValue> out(10'000);
  out.resize(reader->drain(0, out).count);
  return out;
}

// "Enter Fetch+ Fetch- ..." in short.
std::string told(const std::vector<ring::EventValue>& events) {
  static const std::map<wire::EventCode, std::string> kWords = {
      {wire::EventCode::kStepEnter, "{"},      {wire::EventCode::kStepExit, "}"},
      {wire::EventCode::kFetchBegin, "I"},     {wire::EventCode::kFetchEnd, "i"},
      {wire::EventCode::kForwardBegin, "F"},   {wire::EventCode::kForwardEnd, "f"},
      {wire::EventCode::kBackwardBegin, "B"},  {wire::EventCode::kBackwardEnd, "b"},
      {wire::EventCode::kOptimizerBegin, "O"}, {wire::EventCode::kOptimizerEnd, "o"},
      {wire::EventCode::kPhaseBegin, "P"},     {wire::EventCode::kPhaseEnd, "p"},
      {wire::EventCode::kSamples, "s"}};
  std::string text;
  for (const auto& event : events) {
    text += kWords.contains(event.code) ? kWords.at(event.code) : "?";
    if (event.has(wire::kRaised)) text += "!";
  }
  return text;
}

TEST(Api, OutsideARunItIsSilent) {
  EXPECT_EQ(in_child([] {
              unsetenv("STEPSCOPE_SEGMENTS");
              auto run = start();
              auto step = run.step();
              auto phase = step.phase("forward");
              step.samples(4);
              return run.recording() || run.why_not().empty() ? 1 : 0;
            }),
            0);
}

TEST(Api, TurnedOffItMakesNoSegment) {
  ring::TestFolder folder;
  EXPECT_EQ(in_child([&] {
              setenv("STEPSCOPE_SEGMENTS", folder.path().c_str(), 1);
              setenv("STEPSCOPE", "0", 1);
              return start().recording() ? 1 : 0;
            }),
            0);
  EXPECT_TRUE(folder.names().empty());
}

TEST(Api, WithoutRoomItSaysWhyAndTrainingGoesOn) {
  ring::TestFolder folder;
  EXPECT_EQ(in_child([&] {
              setenv("STEPSCOPE_SEGMENTS", folder.path().c_str(), 1);
              setenv("STEPSCOPE_SHM_SHARE", "0.000000001", 1);
              auto run = start();
              {
                auto step = run.step();
              }
              return run.recording() || run.why_not().find("no room") == std::string::npos ? 1 : 0;
            }),
            0);
  EXPECT_TRUE(folder.names().empty());
}

int train(const ring::TestFolder& folder) {
  setenv("STEPSCOPE_SEGMENTS", folder.path().c_str(), 1);
  setenv("STEPSCOPE_SEGMENT_KB", "64", 1);
  setenv("STEPSCOPE_RUN_ID", "job-7", 1);
  setenv("RANK", "2", 1);
  setenv("WORLD_SIZE", "4", 1);
  auto run = start();
  if (!run.recording()) return 1;
  for (int n = 0; n < 3; ++n) {
    try {
      auto step = run.step();
      {
        auto phase = step.phase("input");
      }
      {
        auto phase = step.phase("forward");
      }
      if (n == 1) throw std::runtime_error("a bad batch");
      {
        auto phase = step.phase("backward");
      }
      {
        auto phase = step.phase("optimizer");
      }
      {
        auto phase = step.phase("write log");
      }
      step.samples(32);
    } catch (const std::runtime_error&) {
    }
  }
  {
    auto phase = run.phase("validation");
  }
  return 0;
}

TEST(Api, StepsAndPhasesOfALoop) {
  ring::TestFolder folder;
  ASSERT_EQ(in_child([&] { return train(folder); }), 0);
  const auto all = events(folder);
  EXPECT_EQ(told(all), "{IiFfBbOoPps}{IiFf}!{IiFfBbOoPps}Pp");
  std::vector<int> phases;
  for (const auto& event : all) {
    if (event.code == wire::EventCode::kPhaseBegin) phases.push_back(event.phase);
    if (event.code == wire::EventCode::kSamples) {
      EXPECT_EQ(event.a, 32u);
    }
  }
  EXPECT_EQ(phases, (std::vector<int>{kFirstUserPhase, kFirstUserPhase,
                                      static_cast<int>(Phase::kValidation)}));

  auto reader = ring::Reader::open(folder.only_file());
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->name(kFirstUserPhase), "write log");
  const auto id = reader->identity();
  EXPECT_EQ(id.rank, 2);
  EXPECT_EQ(id.world_size, 4);
  EXPECT_EQ(id.run_id, "job-7");
  EXPECT_NE(id.executable.find("recorder_test"), std::string::npos);
  EXPECT_NE(id.facts & wire::kFactClosed, 0u);
}

}  // namespace
}  // namespace stepscope
