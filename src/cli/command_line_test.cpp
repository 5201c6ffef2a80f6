#include "cli/command_line.h"

#include <gtest/gtest.h>

#include "cli/capture.h"
#include "cli/child.h"
#include "cli/commands.h"
#include "cli/complete.h"
#include "cli/doctor_checks.h"
#include "cli/run_end.h"

namespace stepscope::cli {
namespace {

using Words = std::vector<std::string>;

RunWords split(const Words& words) {
  CLI::App app;
  Action action;
  add_run(app, {}, action);
  return split_run_words(*find_command(app, "run"), words);
}

struct Completed {
  Words words;
  Completion all;
};
Completed completed(const Words& words) {
  CLI::App app;
  Action action;
  add_run(app, {}, action);
  add_status(app, action);
  add_hub(app, action);
  add_agent(app, action);
  Completed out{{}, complete(app, words)};
  for (const Candidate& candidate : out.all.words) out.words.push_back(candidate.word);
  return out;
}

TEST(Complete, CommandsButNotOurOwn) {
  EXPECT_EQ(completed({""}).words, (Words{"run", "status", "hub"}));
  EXPECT_EQ(completed({"s"}).words, Words{"status"});
  EXPECT_TRUE(completed({"nothing", ""}).words.empty());
  EXPECT_TRUE(completed({"agent", "--"}).words.empty());
}

TEST(Complete, OptionsThatWereNotGiven) {
  EXPECT_EQ(completed({"status", "--w"}).words, Words{"--watch"});
  EXPECT_TRUE(completed({"status", "--watch", "--w"}).words.empty());
  EXPECT_EQ(completed({"run", "--set", "a=1", "--set"}).words, Words{"--set"});  // again and again
  EXPECT_TRUE(completed({"hub", "--until"}).words.empty());                      // hidden
}

TEST(Complete, ValuesByTheirText) {
  EXPECT_EQ(completed({"run", "--fail-on", ""}).words, (Words{"warning", "critical"}));
  EXPECT_EQ(completed({"run", "--set", "keep_r"}).words, Words{"keep_raw_steps="});
  EXPECT_TRUE(completed({"hub", "--token-file", ""}).all.files);
  const Completion folder = completed({"hub", "--run-dir", ""}).all;
  EXPECT_TRUE(folder.folders);
  EXPECT_FALSE(folder.files);
  EXPECT_TRUE(completed({"status", ""}).all.folders);
  EXPECT_FALSE(completed({"status", "one", ""}).all.folders);  // it takes one run
}

TEST(Complete, TheUsersCommandIsNotOurs) {
  EXPECT_EQ(completed({"run", ""}).all.command, 1u);
  EXPECT_EQ(completed({"run", "--name", "n", "python", "--j"}).all.command, 3u);
  EXPECT_EQ(completed({"run", "--", "--odd"}).all.command, 2u);
  EXPECT_TRUE(completed({"run", "--name", "n", "python", "--j"}).words.empty());
  EXPECT_FALSE(completed({"run", "--js"}).all.command);
}

TEST(SplitRunWords, FlagsAfterTheCommandAreItsOwn) {
  const RunWords plain = split({"--name", "n", "--json", "train.py", "--name", "x", "--", "-y"});
  EXPECT_EQ(plain.own, (Words{"--name", "n", "--json"}));
  EXPECT_EQ(plain.command, (Words{"train.py", "--name", "x", "--", "-y"}));
}

TEST(SplitRunWords, TwoDashesEndOurs) {
  const RunWords dashes = split({"--quiet", "--", "--odd-program", "a"});
  EXPECT_EQ(dashes.own, Words{"--quiet"});
  EXPECT_EQ(dashes.command, (Words{"--odd-program", "a"}));
  EXPECT_TRUE(split({"--"}).command.empty());
}

TEST(SplitRunWords, ValuesMayLookLikeAnything) {
  EXPECT_EQ(split({"--set=a=1", "--set", "b=2", "--run-dir", "-d", "x"}).command, Words{"x"});
  EXPECT_EQ(split({"--unknown", "x"}).own, Words{"--unknown"});  // the parser refuses it
  EXPECT_EQ(split({"--name"}).own, Words{"--name"});
}

TEST(Runnable, OnlyPythonFilesGetAnInterpreter) {
  const Environment path = {{"PATH", "/usr/bin:/bin"}};
  EXPECT_EQ(*runnable({"sh", "x.py"}, path), (Words{"sh", "x.py"}));
  EXPECT_FALSE(runnable({"x.py"}, {{"PATH", "/nowhere"}}));
}

TEST(ExecFailure, HasTheCodesOfShells) {
  EXPECT_EQ(exec_failure("x", ENOENT).exit_code, 127);
  EXPECT_EQ(exec_failure("x", EACCES).exit_code, 126);
  EXPECT_EQ(exec_failure("x", ENOEXEC).exit_code, 126);
  EXPECT_NE(exec_failure("a b", ENOENT).error.message.find("'a b'"), std::string::npos);
}

TEST(FirstFailing, PossibleAndMilderFindingsPass) {
  const std::string summary = R"({"findings": [
    {"code": "A", "severity": "critical", "confidence": "possible"},
    {"code": "B", "severity": "warning", "confidence": "certain"},
    {"code": "C", "severity": "critical", "confidence": "certain"}]})";
  EXPECT_EQ(first_failing(summary, "warning"), "B is warning");
  EXPECT_EQ(first_failing(summary, "critical"), "C is critical");
  EXPECT_EQ(first_failing(R"({"findings": [{"code": "D", "severity": "info"}]})", "warning"), "");
  for (const char* odd : {"", "[]", "{}", R"({"findings": 3})", R"({"findings": [1, {}]})"})
    EXPECT_EQ(first_failing(odd, "warning"), "") << odd;
}

TEST(Capture, TakesWhatACommandPrintsAndEndsWhatIsSlow) {
  EXPECT_EQ(*capture({"sh", "-c", "echo out; echo err >&2"}, 10), "out\n");
  EXPECT_FALSE(capture({"no-such-program-here"}, 10));
  EXPECT_FALSE(capture({"sh", "-c", "exit 3"}, 10));
  EXPECT_FALSE(capture({"sleep", "1000"}, 0));
}

TEST(DoctorChecks, ReadTheRootTheyAreGiven) {
  Surroundings where{.environment = {{"LANG", "de_DE.UTF-8"}, {"TMPDIR", "/proc"}},
                     .binary = "/nowhere/bin/stepscope",
                     .cwd = "/proc",
                     .root = std::string(STEPSCOPE_SOURCE_DIR) + "/tests/fakeroot/hidden"};
  EXPECT_EQ(check_proc(where).health, Health::kWarn);
  EXPECT_EQ(check_temporary(where).health, Health::kWarn);
  EXPECT_EQ(check_run_folder(where).health, Health::kWarn);
  EXPECT_EQ(check_python_part(where).health, Health::kFail);
  EXPECT_EQ(check_locale(where).found, "locale de_DE.UTF-8");
  where.shm = "/proc";
  EXPECT_EQ(check_shared_memory(where).health, Health::kFail);
  for (const Check& check : check_all(where))
    EXPECT_TRUE(check.health == Health::kOk || !check.hint.empty()) << check.name;
}

TEST(CommandLine, ExitCodes) {
  EXPECT_EQ(run_command_line({"--version"}), 0);
  EXPECT_EQ(run_command_line({"show", "--help"}), 0);
  EXPECT_EQ(run_command_line({}), 2);
  EXPECT_EQ(run_command_line({"rum"}), 2);
  EXPECT_EQ(run_command_line({"run", "--frob"}), 2);
  EXPECT_EQ(run_command_line({"run"}), 2);
  EXPECT_EQ(run_command_line({"show", "a", "b"}), 2);
}

}  // namespace
}  // namespace stepscope::cli
