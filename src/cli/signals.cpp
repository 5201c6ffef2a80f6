#include "cli/signals.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "base/file.h"
#include "base/text.h"

namespace stepscope::cli {
namespace {

// Not among them: SIGKILL and SIGSTOP (nobody gets to pass them on), our own faults, SIGPIPE (ours
// alone), SIGTTIN and SIGTTOU (by default they stop the group, us included, as they should), SIGURG
// (nobody's business by default).
sigset_t passed_on() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGTERM, SIGCONT,
                           SIGTSTP, SIGXCPU, SIGVTALRM, SIGPROF, SIGWINCH, SIGIO, SIGPWR})
    sigaddset(&set, number);
  for (int number = SIGRTMIN; number <= SIGRTMAX; ++number) sigaddset(&set, number);
  return set;
}

bool same(const Signal& a, const Signal& b) {
  return a.number == b.number && a.sender == b.sender && a.code == b.code;
}

[[noreturn]] void witness_main(int report_fd, pid_t supervisor) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != supervisor) ::_exit(0);
  ::prctl(PR_SET_NAME, "stepscope-sig");
  // Holds nothing that somebody may wait for, such as the other end of a pipe.
  if (report_fd != 3 && ::dup2(report_fd, 3) != 3) ::_exit(1);
  for (const int fd : {0, 1, 2}) ::close(fd);
  if (::close_range(4, ~0u, 0) != 0)
    for (int fd = 4; fd < 1024; ++fd) ::close(fd);
  const sigset_t set = passed_on();
  while (true) {
    siginfo_t info;
    const int number = ::sigwaitinfo(&set, &info);
    if (number < 0) continue;
    const Signal signal{number, info.si_pid, info.si_code, 0};
    if (::write(3, &signal, sizeof signal) < 0 && errno == EPIPE) ::_exit(0);
  }
}

}  // namespace

void Forwarding::arrived(const Signal& signal, int64_t now_ns) {
  const auto report = std::find_if(reports_.begin(), reports_.end(),
                                   [&](const Entry& entry) { return same(entry.signal, signal); });
  if (report == reports_.end())
    pending_.push_back({signal, now_ns});
  else
    reports_.erase(report);
}

void Forwarding::witnessed(const Signal& signal, int64_t now_ns) {
  std::erase_if(reports_, [&](const Entry& entry) { return now_ns - entry.at_ns > kForgetNs; });
  const auto waiting = std::find_if(pending_.begin(), pending_.end(),
                                    [&](const Entry& entry) { return same(entry.signal, signal); });
  if (waiting == pending_.end())
    reports_.push_back({signal, now_ns});
  else
    pending_.erase(waiting);
}

std::vector<Signal> Forwarding::take_due(int64_t now_ns) {
  std::vector<Signal> due;
  std::erase_if(pending_, [&](const Entry& entry) {
    if (now_ns - entry.at_ns < kWitnessNs) return false;
    due.push_back(entry.signal);
    return true;
  });
  return due;
}

void Forwarding::postpone(int64_t now_ns) {
  for (Entry& entry : pending_) entry.at_ns = now_ns;
}

std::optional<int64_t> Forwarding::next_due_ns() const {
  if (pending_.empty()) return std::nullopt;
  return pending_.front().at_ns + kWitnessNs;
}

Result<Signals> Signals::take_over() {
  Signals signals;
  sigset_t set = passed_on();
  sigaddset(&set, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &set, &signals.mask_before_);
  struct sigaction plain{};
  plain.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &plain, &signals.pipe_before_);
  plain.sa_handler = SIG_DFL;  // some launchers ignore it, and then wait() finds nothing
  ::sigaction(SIGCHLD, &plain, &signals.child_before_);
  signals.fd_ = Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals.fd_) {
    Error error{"cannot watch signals: " + errno_text(), ""};
    signals.give_back();
    return error;
  }
  return signals;
}

std::vector<Signal> Signals::read() {
  std::vector<Signal> out;
  signalfd_siginfo info;
  while (::read(fd_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info))
    out.push_back({static_cast<int>(info.ssi_signo), static_cast<int32_t>(info.ssi_pid),
                   info.ssi_code, static_cast<int64_t>(info.ssi_ptr)});
  return out;
}

void Signals::give_back() const {
  ::sigaction(SIGPIPE, &pipe_before_, nullptr);
  ::sigaction(SIGCHLD, &child_before_, nullptr);
  ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

Result<Witness> Witness::start() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
    return Error{"cannot make a pipe: " + errno_text(), ""};
  Witness witness;
  witness.reports_ = Fd(ends[0]);
  const Fd write_end(ends[1]);
  const pid_t supervisor = ::getpid();
  witness.pid_ = ::fork();
  if (witness.pid_ == 0) witness_main(write_end.get(), supervisor);
  if (witness.pid_ < 0) return Error{"cannot start a process: " + errno_text(), ""};
  return witness;
}

Witness::Witness(Witness&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), reports_(std::move(other.reports_)) {}

Witness::~Witness() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::vector<Signal> Witness::read() {
  std::vector<Signal> out;
  Signal signal;
  ssize_t n;
  while ((n = ::read(reports_.get(), &signal, sizeof signal)) ==
         static_cast<ssize_t>(sizeof signal))
    out.push_back(signal);
  if (n == 0) reports_.reset();  // it is gone
  return out;
}

bool Witness::has_pending(int signal_number) const {
  const auto status = read_file("/proc/" + std::to_string(pid_) + "/status", 16 * 1024);
  if (!status) return false;
  for (const std::string_view line : split(*status, '\n')) {
    if (!line.starts_with("ShdPnd:") && !line.starts_with("SigPnd:")) continue;
    const auto bits = parse_number<uint64_t>(trim(line.substr(7)), 16);
    if (bits && (*bits >> (signal_number - 1) & 1) != 0) return true;
  }
  return false;
}

bool Witness::at_rest() const {
  const auto stat = read_file("/proc/" + std::to_string(pid_) + "/stat", 1024);
  if (!stat) return true;  // /proc is hidden: time is all there is to go by
  const size_t name_end = stat->rfind(") ");
  const char state =
      name_end != std::string::npos && name_end + 2 < stat->size() ? (*stat)[name_end + 2] : 'S';
  return state != 'R' && state != 'D';
}

}  // namespace stepscope::cli
