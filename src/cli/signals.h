// Signals between the supervisor and its child, so that the child sees what it would see without
// us: each signal once.
//
// The child stays in the supervisor's process group, session and terminal. So a signal for the
// group (^C and ^Z at the terminal, kill(-pgid), a scheduler that signals every process of a job)
// reaches it without our help, while one for the supervisor alone (torchrun, docker, kill PID) must
// be passed on. What arrives does not say which it was, and passing on in doubt would give the
// child a second SIGTERM in the middle of its clean shutdown. So a third process stands in the
// group, the witness: it does nothing but report what signals it got. What both got, the child got.
//
//   signal at the supervisor --> pending --witness reports the same--> dropped
//                                        --kWitnessNs pass, and the witness is at rest--> passed on
//
// Thread safety: one thread. Lifetime: the witness dies with the supervisor (PDEATHSIG) or with
// this object.
// Invariant: handlers and ignored signals are inherited by the child as they were; only the mask is
// ours, and undone.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace stepscope::cli {

struct Signal {
  int number = 0;
  int32_t sender = 0;  // pid, 0 for the kernel
  int32_t code = 0;    // si_code
  int64_t value = 0;   // of sigqueue
};

// Pure: which signals are passed on, and when.
class Forwarding {
 public:
  static constexpr int64_t kWitnessNs = 20'000'000;    // how long a report may lag behind
  static constexpr int64_t kForgetNs = 1'000'000'000;  // a report that no signal of ours matches

  void arrived(const Signal& signal, int64_t now_ns);
  void witnessed(const Signal& signal, int64_t now_ns);
  std::vector<Signal> take_due(int64_t now_ns);
  void postpone(
      int64_t now_ns);  // what is pending arrived now: we or the witness did not get to run
  std::optional<int64_t> next_due_ns() const;

 private:
  struct Entry {
    Signal signal;
    int64_t at_ns;
  };
  std::vector<Entry> pending_, reports_;
};

// All signals that can be passed on are blocked and read from a descriptor. SIGCHLD is among them;
// SIGPIPE is ignored.
class Signals {
 public:
  static Result<Signals> take_over();
  Signals(Signals&&) noexcept = default;
  Signals& operator=(Signals&&) noexcept = default;

  int fd() const { return fd_.get(); }
  std::vector<Signal> read();
  void give_back() const;  // in a child before exec: mask and dispositions as they were found

 private:
  Signals() = default;
  Fd fd_;
  sigset_t mask_before_{};
  struct sigaction pipe_before_{}, child_before_{};
};

class Witness {
 public:
  static Result<Witness> start();  // before any other descriptor is opened
  Witness(Witness&& other) noexcept;
  Witness& operator=(Witness&&) = delete;
  ~Witness();

  int fd() const { return reports_.get(); }
  pid_t pid() const { return pid_; }
  std::vector<Signal> read();
  bool has_pending(int signal_number) const;  // it got it and did not come to report it yet
  bool at_rest() const;         // asleep, or stopped: all that it could report is in the pipe
  void reaped() { pid_ = -1; }  // somebody killed it, and the supervisor's wait() saw it

 private:
  Witness() = default;
  pid_t pid_ = -1;
  Fd reports_;
};

}  // namespace stepscope::cli
