#include "cli/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/say.h"
#include "sampler/sampler.h"

namespace stepscope::cli {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSecond = 1'000'000'000;
constexpr size_t kMaxAgentText = 16 * 1024, kMaxPageLine = 500;
constexpr int64_t kRestartPauseNs[Supervisor::kAgentRestarts] = {100 * kMs, kSecond, 5 * kSecond};

bool has_terminal() {
  return static_cast<bool>(Fd(::open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC)));
}

bool is_request_to_stop(int number) {
  return number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT;
}

}  // namespace

Supervisor::Supervisor(Signals signals, std::optional<Witness> witness, std::string segment_folder,
                       bool owner, bool quiet, Member self)
    : signals_(std::move(signals)),
      witness_(std::move(witness)),
      folder_(std::move(segment_folder)),
      owner_(owner),
      quiet_(quiet),
      self_(std::move(self)) {}

Started Supervisor::start(const std::vector<std::string>& command,
                          const std::vector<std::string>& environment) {
  const Started started = start_child(command, environment, signals_);
  if (started.error_number != 0) {
    self_.code = std::to_string(exec_failure(command[0], started.error_number).exit_code);
    self_.ended_mono_ns = monotonic_ns();
    write_own_member();
    if (owner_ && others_alive()) launch_agent();  // they joined, and count on it
    return started;
  }
  child_ = started.pid;
  if (self_.pid ==
      ::getpid()) {  // else /proc is another namespace's, and names the child otherwise
    self_.child_pid = child_;
    self_.child_start = sampler::process_start(child_).value_or(0);
  }
  write_own_member();
  if (owner_ && !folder_.empty()) {
    launch_agent();
    if (page_) page_->launch(folder_);
  }
  return started;
}

void Supervisor::write_own_member() {
  if (!folder_.empty())
    (void)write_member(folder_, self_);  // lost: the agent sees that we and the child are gone
}

void Supervisor::launch_agent() {
  ++agent_starts_;
  next_agent_start_ns_ = -1;
  agent_ = start_agent(folder_);
}

int Supervisor::wait() {
  while (!status_) {
    int64_t until = INT64_MAX;
    if (const auto due = forwarding_.next_due_ns()) until = std::min(until, *due);
    if (next_agent_start_ns_ >= 0) until = std::min(until, next_agent_start_ns_);
    const auto page_due = page_ ? page_->next_start_ns() : std::nullopt;
    if (page_due) until = std::min(until, *page_due);
    poll_once(until);
    if (next_agent_start_ns_ >= 0 && monotonic_ns() >= next_agent_start_ns_) launch_agent();
    if (page_due && monotonic_ns() >= *page_due) page_->launch(folder_);
  }
  const int code = WIFEXITED(*status_) ? WEXITSTATUS(*status_) : 128 + WTERMSIG(*status_);
  self_.code =
      WIFEXITED(*status_) ? std::to_string(code) : "signal " + std::to_string(WTERMSIG(*status_));
  self_.ended_mono_ns = monotonic_ns();
  write_own_member();
  witness_.reset();
  asked_to_stop_ = false;  // what ended the child does not end our wait for the summary
  return code;
}

void Supervisor::poll_once(int64_t until_ns) {
  pollfd entries[4] = {{signals_.fd(), POLLIN, 0},
                       {witness_ ? witness_->fd() : -1, POLLIN, 0},
                       {agent_.output.get(), POLLIN, 0},
                       {page_ ? page_->fd() : -1, POLLIN, 0}};
  int timeout_ms = -1;
  if (until_ns != INT64_MAX)
    timeout_ms = static_cast<int>(
        std::clamp<int64_t>((until_ns - monotonic_ns() + kMs - 1) / kMs, 0, 60'000));
  ::poll(entries, 4, timeout_ms);
  if (entries[2].revents != 0) read_agent();
  if (entries[3].revents != 0) read_page();
  handle_signals();
}

void Supervisor::handle_signals() {
  const std::vector<Signal> arrived = signals_.read();
  int64_t now = monotonic_ns();
  if (witness_)
    for (const Signal& signal : witness_->read()) forwarding_.witnessed(signal, now);
  for (const Signal& signal : arrived) {
    if (signal.number == SIGCHLD) {
      reap();
      now = monotonic_ns();  // we may have been stopped with the child
      continue;
    }
    if (is_request_to_stop(signal.number)) asked_to_stop_ = true;
    // The scheduler's warning: whatever happens next, the summary of this moment is on disk.
    if (signal.number == SIGTERM) summary_wanted_ = !folder_.empty();
    if (status_ || signal.sender == child_)
      continue;  // what the child sends its parent is not for itself
    forwarding_.arrived(signal, now);
  }
  const auto due = forwarding_.next_due_ns();
  if (witness_ && due && *due <= now) {
    if (!witness_->at_rest()) forwarding_.postpone(now);  // a busy machine: it will tell
    for (const Signal& signal : witness_->read()) forwarding_.witnessed(signal, now);
  }
  for (const Signal& signal : forwarding_.take_due(now))
    if (!witness_ || !witness_->has_pending(signal.number)) pass_on(signal);
  if (!summary_wanted_) return;
  const pid_t agent = agent_.pid > 0 ? agent_.pid : agent_pid(folder_);
  if (agent > 0 && ::kill(agent, SIGUSR1) == 0)
    summary_wanted_ = false;  // else when there is one again
}

void Supervisor::pass_on(const Signal& signal) {
  if (status_ || child_ <= 0) return;
  sigval value{};
  value.sival_ptr = reinterpret_cast<void*>(signal.value);
  if (signal.code != SI_QUEUE || ::sigqueue(child_, signal.number, value) != 0)
    ::kill(child_, signal.number);
  if (signal.number == SIGCONT && witness_) ::kill(witness_->pid(), SIGCONT);
}

void Supervisor::reap() {
  int status = 0;
  // Any child: as PID 1 of a container we inherit orphans, and a shell in our place would collect
  // them.
  for (pid_t pid; (pid = ::waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0;) {
    if (WIFSTOPPED(status)) {
      if (pid == child_) child_stopped(WSTOPSIG(status));
    } else if (pid == child_) {
      status_ = status;
    } else if (pid == agent_.pid) {
      agent_gone(status);
    } else if (page_ && page_->reaped(pid, status, monotonic_ns())) {
      continue;
    } else if (witness_ && pid == witness_->pid()) {
      witness_->reaped();
      witness_.reset();
    }
  }
}

// ^Z stops the child as part of the group. The shell watches us, so we stop too; fg continues the
// group.
void Supervisor::child_stopped(int signal_number) {
  const bool by_terminal =
      signal_number == SIGTSTP || signal_number == SIGTTIN || signal_number == SIGTTOU;
  if (!by_terminal || !has_terminal()) return;
  ::kill(::getpid(), SIGSTOP);
  forwarding_.postpone(monotonic_ns());  // the time we were stopped is not the witness's delay
}

void Supervisor::agent_gone(int status) {
  read_agent();
  agent_.pid = -1;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;  // it ended by itself
  if (agent_starts_ > kAgentRestarts) return;
  next_agent_start_ns_ =
      monotonic_ns() + kRestartPauseNs[std::clamp(agent_starts_ - 1, 0, kAgentRestarts - 1)];
}

void Supervisor::read_agent() {
  char buffer[4096];
  ssize_t n;
  while ((n = ::read(agent_.output.get(), buffer, sizeof buffer)) > 0) {
    agent_line_.append(buffer, static_cast<size_t>(n));
    for (size_t end; (end = agent_line_.find('\n')) != std::string::npos;
         agent_line_.erase(0, end + 1))
      agent_said(agent_line_.substr(0, end));
    if (agent_line_.size() > kMaxAgentText) agent_line_.clear();
  }
  if (n != 0) return;
  agent_.output.reset();
  agent_said(std::exchange(agent_line_, {}));
}

void Supervisor::agent_said(const std::string& line) {
  if (line.starts_with(kLivePrefix)) {
    if (!quiet_) say(printable(line.substr(kLivePrefix.size()), kMaxLiveLine));
  } else if (agent_text_.size() < kMaxAgentText) {
    agent_text_ += line + "\n";
  }
}

void Supervisor::read_page() {
  constexpr std::string_view kName = "stepscope: ";  // it says so itself
  for (const std::string& line : page_->read())
    if (!quiet_)
      say(printable(line.substr(line.starts_with(kName) ? kName.size() : 0), kMaxPageLine));
}

void Supervisor::wait_for_page() {
  if (!page_) return;
  page_->wait_for_end();
  read_page();
}

bool Supervisor::others_alive() const {
  if (folder_.empty()) return false;
  for (const Member& member : read_members(folder_))
    if (member.pid != self_.pid && is_alive(member)) return true;
  return false;
}

Supervisor::RunEnd Supervisor::wait_for_end() {
  RunEnd end;
  const int64_t deadline = monotonic_ns() + kAgentEndNs;
  bool last_try = false;
  while (!folder_.empty()) {
    end.finished = !is_folder(folder_);
    end.interrupted = asked_to_stop_;
    const int64_t now = monotonic_ns();
    if (end.finished || end.interrupted || now >= deadline) break;
    const bool ours = agent_.pid > 0;
    if (!ours && !last_try &&
        !agent_alive(folder_)) {  // nobody is there to end it: one more agent, whoever we are
      last_try = true;
      launch_agent();
      continue;
    }
    if (!ours && last_try && !agent_alive(folder_)) break;  // it could not: what it said tells why
    poll_once(std::min(deadline, now + (ours ? 100 * kMs : 10 * kMs)));
  }
  read_agent();
  end.others_alive = others_alive();
  for (const std::string_view line : split(agent_text_, '\n')) {
    constexpr std::string_view kFolder = "folder=";
    if (line.starts_with(kFolder))
      end.moved_to = line.substr(kFolder.size());
    else if (!line.empty())
      end.said.push_back(printable(line));
  }
  return end;
}

}  // namespace stepscope::cli
