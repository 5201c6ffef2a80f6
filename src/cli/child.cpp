#include "cli/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/text.h"
#include "cli/install.h"

namespace stepscope::cli {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> out;
  for (const std::string& word : words) out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

bool in_path(const std::string& program, const Environment& environment) {
  const auto path = environment.find("PATH");
  const std::string folders = path == environment.end() ? "/bin:/usr/bin" : path->second;
  for (const std::string_view folder : split(folders, ':'))
    if (::access((folder.empty() ? program : std::string(folder) + "/" + program).c_str(), X_OK) ==
        0)
      return true;
  return false;
}

void set_apart(const Fd& output, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(127);
  ::setsid();
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(null, 0);
  ::dup2(output.get(), 1);
  ::dup2(output.get(), 2);
}

Started start(const std::vector<std::string>& command, const std::vector<std::string>& environment,
              const Signals& signals, const Fd* apart) {
  int report[2];  // closed by a successful exec; else the errno comes through it
  if (::pipe2(report, O_CLOEXEC) != 0) return {-1, errno};
  const Fd read_end(report[0]);
  Fd write_end(report[1]);
  const std::vector<char*> arguments = pointers(command), variables = pointers(environment);
  const pid_t self = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return {-1, errno};
  if (pid == 0) {
    if (apart != nullptr) set_apart(*apart, self);
    signals.give_back();
    ::execvpe(arguments[0], arguments.data(), variables.data());
    const int error = errno;
    (void)!::write(write_end.get(), &error, sizeof error);
    ::_exit(127);
  }
  write_end.reset();
  int error = 0;
  ssize_t n;
  do n = ::read(read_end.get(), &error, sizeof error);
  while (n < 0 && errno == EINTR);
  if (n != static_cast<ssize_t>(sizeof error)) return {pid, 0};
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return {-1, error};
}

}  // namespace

Result<std::vector<std::string>> runnable(std::vector<std::string> command,
                                          const Environment& environment) {
  if (command.empty() || !command[0].ends_with(".py")) return command;
  for (const char* python : {"python", "python3"}) {
    if (!in_path(python, environment)) continue;
    command.insert(command.begin(), python);
    return command;
  }
  return Error{"cannot run " + command[0] + ": there is no python or python3 in PATH",
               "name the interpreter: stepscope run /path/to/python " + command[0]};
}

std::vector<std::string> environment_with(
    const std::vector<std::pair<std::string, std::string>>& additions) {
  std::vector<std::string> out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    bool replaced = false;
    for (const auto& [name, value] : additions)
      replaced = replaced || (text.starts_with(name) && text.substr(name.size()).starts_with('='));
    if (!replaced) out.emplace_back(text);
  }
  for (const auto& [name, value] : additions) out.push_back(name + "=" + value);
  return out;
}

ExecFailure exec_failure(const std::string& program, int error_number) {
  const bool missing = error_number == ENOENT;
  const bool bare = program.find('/') == std::string::npos;
  ExecFailure failure;
  failure.exit_code = missing ? 127 : 126;
  failure.error.message = "cannot run " + shell_quote(printable(program, 300)) + ": " +
                          (missing && bare ? "it is not in PATH" : errno_text(error_number));
  if (missing)
    failure.error.hint = "check the spelling, or give the command's full path";
  else if (error_number == EACCES)
    failure.error.hint =
        "make it executable (chmod +x), or name its interpreter: stepscope run python " + program;
  return failure;
}

Started start_child(const std::vector<std::string>& command,
                    const std::vector<std::string>& environment, const Signals& signals) {
  return start(command, environment, signals, nullptr);
}

Started start_apart(const std::vector<std::string>& command,
                    const std::vector<std::string>& environment, const Signals& signals,
                    const Fd& output) {
  return start(command, environment, signals, &output);
}

pid_t start_own(const std::vector<std::string>& command, const OwnFds& fds) {
  const std::string binary = own_path();
  const std::vector<char*> arguments = pointers(command);
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  // Our signal mask stays: what comes before it is ready waits for it, and does not end it.
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  // First out of the way of 0 to 3.
  const auto aside = [](int fd) { return fd < 0 ? -1 : ::fcntl(fd, F_DUPFD_CLOEXEC, 10); };
  const int input = aside(fds.input), output = aside(fds.output), extra = aside(fds.extra);
  ::dup2(input >= 0 ? input : null, 0);
  ::dup2(output >= 0 ? output : null, 1);
  ::dup2(output >= 0 ? output : null, 2);
  if (extra >= 0) ::dup2(extra, 3);
  const unsigned first = extra >= 0 ? 4 : 3;
  if (::close_range(first, ~0u, CLOSE_RANGE_CLOEXEC) !=
      0)  // nothing that was left open for the child is ours to hold
    for (unsigned fd = first; fd < 1024; ++fd) ::fcntl(static_cast<int>(fd), F_SETFD, FD_CLOEXEC);
  ::execv("/proc/self/exe", arguments.data());  // also when the file was replaced meanwhile
  ::execv(binary.c_str(), arguments.data());    // where /proc is hidden
  ::_exit(127);
}

StartedAgent start_agent(const std::string& segment_folder) {
  int output[2];
  if (::pipe2(output, O_CLOEXEC) != 0) return {};
  StartedAgent agent;
  agent.output = Fd(output[0]);
  const Fd write_end(output[1]);
  ::fcntl(agent.output.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(write_end.get(), F_SETFL,
          O_NONBLOCK);  // a supervisor that is stopped never stops the agent
  agent.pid = start_own({"stepscope", "agent", "--segments", segment_folder},
                        {.input = -1, .output = write_end.get(), .extra = -1});
  return agent;
}

ExecFailure become(const std::vector<std::string>& command) {
  const std::vector<char*> arguments = pointers(command);
  ::execvp(arguments[0], arguments.data());
  return exec_failure(command[0], errno);
}

}  // namespace stepscope::cli
