#include "cli/capture.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"

namespace stepscope::cli {
namespace {

constexpr size_t kMost = 64 * 1024;
constexpr int kNotStarted = 127;

[[noreturn]] void become(const std::vector<std::string>& command, int output) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(null, 0);
  ::dup2(output, 1);
  ::dup2(null, 2);
  ::execvp(arguments[0], arguments.data());
  ::_exit(kNotStarted);
}

}  // namespace

Result<std::string> capture(const std::vector<std::string>& command, int seconds) {
  const std::string& program = command[0];
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error{"cannot make a pipe: " + errno_text(), ""};
  const Fd output(ends[0]);
  Fd write_end(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return Error{"cannot start " + program + ": " + errno_text(), ""};
  if (pid == 0) become(command, write_end.get());
  write_end.reset();
  std::string text;
  const int64_t deadline = monotonic_ns() + int64_t{seconds} * 1'000'000'000;
  bool late = false;
  while (!late) {
    const int64_t left_ms = std::max<int64_t>((deadline - monotonic_ns()) / 1'000'000, 0);
    pollfd entry{output.get(), POLLIN, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(left_ms));
    late = ready == 0;
    if (ready <= 0) continue;
    char buffer[4096];
    const ssize_t n = ::read(output.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    if (text.size() < kMost) text.append(buffer, static_cast<size_t>(n));
  }
  if (late) ::kill(pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (late) return Error{program + " did not answer within " + std::to_string(seconds) + " s", ""};
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotStarted)
    return Error{"there is no " + program + " in PATH", ""};
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return Error{program + " failed", ""};
  return text;
}

}  // namespace stepscope::cli
