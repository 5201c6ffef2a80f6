#include "cli/agent_loop.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/detached.h"
#include "cli/hub_member.h"
#include "cli/recording.h"
#include "cli/recover.h"
#include "cli/segment_folder.h"
#include "cli/stacks.h"
#include "cli/supervisor.h"
#include "serve/api.h"

namespace stepscope::cli {
namespace {

using std::chrono::milliseconds;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kEndGraceNs = 300'000'000;      // segments of processes that outlive the child
constexpr int64_t kAloneGraceNs = 10 * kSecond;   // without a supervisor: after the last process
constexpr int64_t kNothingCameNs = 30 * kSecond;  // without a supervisor: no segment at all
constexpr int64_t kClosedGraceNs =
    kSecond / 2;  // without a supervisor: for the other ranks, once rank 0 closed
constexpr int64_t kLockWaitNs = kSecond;
constexpr int64_t kReplyAgeNs = kSecond;  // a summary for the API may be this old
constexpr int kNice = 5;
// A run of a hundred quick steps is over in seconds: at first its memory is read more often.
constexpr int64_t kDenseMemoryNs = 30 * kSecond, kMemoryTickNs = kSecond / 5;
// And CPU use, which takes two readings, when there may be no time for a second one.
constexpr int64_t kDenseNs = 3 * kSecond, kDenseTickNs = kSecond / 2;
constexpr milliseconds kIdleTick{200}, kBusyTick{20};

void say(const std::string& line) { (void)write_all(2, line + "\n"); }

// Through the supervisor. The hub's lines are a peer's: one line each, whatever is in them.
void say_live(const std::string& line) {
  say(std::string(Supervisor::kLivePrefix) + printable(line, Supervisor::kMaxLiveLine));
}

Fd watch_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGUSR1, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR2, SIGALRM, SIGCHLD})
    sigaddset(&set, number);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);  // a file size limit is an error of write, not our end
  return Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

// Members end by a write, segments come by a rename: both end the wait of the loop.
Fd watch_folder(const std::string& folder) {
  Fd fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (fd) ::inotify_add_watch(fd.get(), folder.c_str(), IN_MOVED_TO | IN_CLOSE_WRITE | IN_ONLYDIR);
  return fd;  // without it the tick is all there is
}

// Other runs' remains are finished in a process apart: whatever is in them, this run's agent goes
// on.
void finish_others() {
  if (segment_folders().size() < 2 || ::fork() != 0) return;
  ::close_range(0, ~0u, 0);  // agent.lock among them
  const int64_t deadline = monotonic_ns() + 10 * kSecond;
  (void)finish_dead_runs([&] { return monotonic_ns() < deadline; });
  ::_exit(0);
}

class Agent {
 public:
  Agent(std::string folder, RunInfo info, bool alone, Fd signals)
      : folder_(std::move(folder)),
        info_(info),
        alone_(alone),
        recording_(folder_, std::move(info)),
        hub_(info_, folder_),
        signals_(std::move(signals)) {}

  int main();

 private:
  void listen();
  void take_signals();
  void poll(int64_t now);
  void tick();
  milliseconds pause() const;
  bool time_to_end();
  bool decide_end();
  int end();

  std::string folder_;
  RunInfo info_;
  bool alone_;  // no supervisor
  Recording recording_;
  HubMember hub_;
  Stacks stacks_;
  Fd signals_, changes_;
  serve::Loop loop_;
  std::vector<Member> members_;
  bool members_alive_ = true, write_now_ = false;
  double fill_per_ms_ = 0;
  int64_t last_poll_ns_ = 0;
  int64_t began_ns_ = 0, last_tick_ns_ = 0, last_memory_ns_ = 0, last_life_ns_ = 0;
  int64_t closed_ns_ =
      0;  // when rank 0 was first seen to have closed its segment; -1 once that was answered
  struct Reply {
    std::string text;
    int64_t at_ns = 0;
  };
  std::array<Reply, 3> replies_;  // to /v1/summary, by form
};

void Agent::listen() {
  const serve::Api api{
      .health = [this] { return recording_.health_json(monotonic_ns()); },
      .summary =
          [this](report::JsonForm form, bool fresh) {
            const int64_t now = monotonic_ns();
            Reply& reply = replies_[static_cast<size_t>(form)];
            if (fresh) poll(now);  // somebody's training ends
            if (fresh || reply.text.empty() || now - reply.at_ns > kReplyAgeNs)
              reply = {recording_.summary_json(now, form), now};
            return reply.text;
          },
      .card =
          [this](const report::CardStyle& style) { return recording_.card(monotonic_ns(), style); },
      .status =
          [this](const report::CardStyle& style) {
            return recording_.status(monotonic_ns(), style);
          },
      .control =
          [this](serve::ControlWord word) {
            if (word == serve::ControlWord::kWrite)
              write_now_ = true;
            else
              recording_.control(word == serve::ControlWord::kOn ? wire::Control::kOn
                                                                 : wire::Control::kOff);
          },
      .view =
          [this](const report::ViewQuery& query) { return recording_.view(query, monotonic_ns()); },
      .tick =
          [this](std::optional<int64_t> since_step) {
            const int64_t now = monotonic_ns();
            poll(now);  // somebody watches: a step is seen as soon as it has ended
            return recording_.tick_json(now, since_step);
          }};
  const Status listening =
      loop_.listen(folder_ + "/api.sock",
                   [api](const serve::Request& request) { return serve::route(api, request); });
  if (!listening) recording_.note(listening.error().message);
}

void Agent::take_signals() {
  signalfd_siginfo info;
  while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    if (info.ssi_signo == SIGUSR1 || info.ssi_signo == SIGTERM) write_now_ = true;
    if (info.ssi_signo == SIGCHLD)
      while (::waitpid(-1, nullptr, WNOHANG) > 0) {
      }
  }
  char events[4096];
  while (::read(changes_.get(), events, sizeof events) > 0) {
  }
}

void Agent::poll(int64_t now) {
  const double fill_before = recording_.fullest();
  recording_.poll(now);
  const double ms = static_cast<double>(std::max<int64_t>(now - last_poll_ns_, 1'000'000)) / 1e6;
  fill_per_ms_ = (recording_.fullest() - fill_before) / ms;
  last_poll_ns_ = now;
}

void Agent::tick() {
  const int64_t now = monotonic_ns();
  poll(now);
  if (recording_.any_alive()) last_life_ns_ = now;
  const int64_t tick_ns = now - began_ns_ < kDenseNs ? kDenseTickNs : kSecond;
  const bool full_tick = now - last_tick_ns_ >= tick_ns;
  if (full_tick) {
    last_tick_ns_ = now;
    recording_.sample(now);
    last_memory_ns_ = now;
    std::vector<std::string> lines = recording_.follow(now);
    if (hub_.joined()) lines.clear();  // it speaks for all nodes
    for (const std::string& line : lines) say_live(line);
    if (const auto stack = stacks_.tick(recording_.run(), now)) {
      recording_.note(*stack);
      say_live(*stack);
    }
  } else if (now - began_ns_ < kDenseMemoryNs && now - last_memory_ns_ >= kMemoryTickNs) {
    last_memory_ns_ = now;
    recording_.sample_memory(now);
  }
  if (full_tick || recording_.fullest() >= agent::Segments::kCommitEarly) recording_.commit(now);
  hub_.tick(recording_.run(), now);
  for (const std::string& line : hub_.news()) say_live(line);
  if (alone_ && closed_ns_ == 0 && recording_.first_closed()) closed_ns_ = now;
  if (closed_ns_ > 0 && now - closed_ns_ > kClosedGraceNs) {  // its process waits for the card
    write_now_ = true;
    closed_ns_ = -1;
  }
  if (std::exchange(write_now_, false)) {
    const Status written = recording_.write_summary(now, true);
    if (!written) recording_.note(written.error().message);
  }
}

// Before a ring is a quarter full, at the rate at which the fullest was found to fill.
milliseconds Agent::pause() const {
  if (!members_alive_ || recording_.fullest() >= agent::Segments::kCommitEarly) return kBusyTick;
  if (fill_per_ms_ <= 0) return kIdleTick;
  const double ms = std::min(agent::Segments::kCommitEarly / fill_per_ms_,
                             static_cast<double>(kIdleTick.count()));
  return std::max(kBusyTick, milliseconds(static_cast<int64_t>(ms)));
}

bool Agent::time_to_end() {
  const int64_t now = monotonic_ns();
  members_ = read_members(folder_);
  if (members_.empty() && alone_) {
    if (!recording_.any_seen()) return now - began_ns_ > kNothingCameNs;
    if (recording_.all_closed()) return true;  // every rank said that this was all
    return !recording_.any_alive() && now - last_life_ns_ > kAloneGraceNs;
  }
  members_alive_ =
      std::any_of(members_.begin(), members_.end(), [](const Member& m) { return is_alive(m); });
  if (members_alive_) return false;
  if (members_.empty() && sampler::process_alive(info_.owner_pid, info_.owner_start)) return false;
  if (!recording_.any_alive()) return true;
  int64_t ended_ns = 0;
  for (const Member& member : members_) ended_ns = std::max(ended_ns, member.ended_mono_ns);
  const bool told =
      ended_ns > 0;  // else the supervisors were killed: the training goes on until it ends
  return told && now - ended_ns > kEndGraceNs;
}

// Under the lock nobody can join: either somebody did in time, or nobody does any more.
bool Agent::decide_end() {
  const Fd lock = lock_folder(folder_, kLockWaitNs);
  if (!lock && errno != ENOENT)
    return false;  // a joiner was stopped with the lock in hand: try again later
  if (!lock) return true;
  tick();
  if (!time_to_end()) return false;
  if (const Status marked = mark_ended(folder_); !marked)
    say("cannot end in order: " + marked.error().message);
  return true;
}

int Agent::end() {
  const int64_t now = monotonic_ns();
  members_ = read_members(folder_);
  int64_t ended_ns = 0;
  for (const Member& member : members_) ended_ns = std::max(ended_ns, member.ended_mono_ns);
  Recording::Ended ended{exit_code(members_), 0};
  if (ended_ns > 0) ended.duration_ns = ended_ns - info_.started_mono_ns;
  const auto where = recording_.finish(ended, now);
  if (!where) {
    say("cannot write the summary: " + where.error().message);
    return 2;  // the folder stays: a later command may have more room
  }
  const std::string of_hub = hub_.finish(recording_.run(), *where, now + HubMember::kFinishNs);
  if (!of_hub.empty()) say(of_hub);
  if (*where != info_.folder) say("folder=" + *where);
  loop_ = serve::Loop();
  remove_segment_folder(folder_);
  return 0;
}

int Agent::main() {
  changes_ = watch_folder(folder_);
  if (signals_) loop_.wake_on(signals_.get());
  if (changes_) loop_.wake_on(changes_.get());
  listen();
  began_ns_ = last_life_ns_ = monotonic_ns();
  tick();  // run.db is there from the start
  finish_others();
  while (true) {
    if ((has_ended(folder_) || time_to_end()) && (has_ended(folder_) || decide_end())) return end();
    loop_.wait(pause());
    take_signals();
    tick();
    if (!is_folder(folder_)) {
      say("the segment folder " + folder_ + " was removed: recording ends here");
      return end();
    }
  }
}

}  // namespace

int run_agent(const AgentOptions& options) {
  ::prctl(PR_SET_NAME, "stepscope");
  ::setsid();
  const int nice_now = ::getpriority(PRIO_PROCESS, 0);
  ::setpriority(PRIO_PROCESS, 0, std::min(nice_now + kNice, 19));
  if (options.detach) {
    if (const Status detached = detach(); !detached) {
      say("stepscope: " + detached.error().message);
      return 2;
    }
  }
  Fd signals = watch_signals();  // before the lock says that there is somebody to be signalled
  const Fd lock = take_agent_lock(options.segments);
  if (!lock) return 0;  // it has its agent
  auto info = read_run_info(options.segments);
  if (!info && options.detach) info = found_run(options);
  if (!info) {
    say("no run.txt in " + options.segments);
    return 2;
  }
  return Agent(options.segments, std::move(*info), options.detach, std::move(signals)).main();
}

}  // namespace stepscope::cli
