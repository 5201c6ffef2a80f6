#include "cli/signals.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>

#include "base/clock.h"

namespace stepscope::cli {
namespace {

constexpr int64_t kMs = 1'000'000;
const Signal kTerm{SIGTERM, 100, SI_USER, 0};
const Signal kInterrupt{SIGINT, 0, SI_KERNEL, 0};

std::vector<int> numbers(const std::vector<Signal>& signals) {
  std::vector<int> out;
  for (const Signal& signal : signals) out.push_back(signal.number);
  return out;
}

TEST(Forwarding, ForTheSupervisorAloneIsPassedOnOnce) {
  Forwarding forwarding;
  EXPECT_FALSE(forwarding.next_due_ns());
  forwarding.arrived(kTerm, 0);
  EXPECT_EQ(forwarding.next_due_ns(), Forwarding::kWitnessNs);
  EXPECT_TRUE(forwarding.take_due(Forwarding::kWitnessNs - 1).empty());
  EXPECT_EQ(numbers(forwarding.take_due(Forwarding::kWitnessNs)), std::vector{SIGTERM});
  EXPECT_TRUE(forwarding.take_due(10 * Forwarding::kWitnessNs).empty());
}

TEST(Forwarding, ForTheGroupIsNotPassedOn) {
  Forwarding forwarding;
  forwarding.arrived(kTerm, 0);
  forwarding.witnessed(kTerm, 5 * kMs);
  forwarding.witnessed(kInterrupt, 6 * kMs);  // the witness may be first
  forwarding.arrived(kInterrupt, 7 * kMs);
  EXPECT_TRUE(forwarding.take_due(1000 * kMs).empty());
}

TEST(Forwarding, TheSameSignalFromAnotherIsAnother) {
  Forwarding forwarding;
  Signal other = kTerm;
  other.sender = 200;
  forwarding.arrived(kTerm, 0);
  forwarding.witnessed(other, 0);
  EXPECT_EQ(numbers(forwarding.take_due(100 * kMs)), std::vector{SIGTERM});
}

TEST(Forwarding, OneReportExcusesOneSignal) {  // timeout(1) signals its child, then its group
  Forwarding forwarding;
  forwarding.arrived(kTerm, 0);
  forwarding.witnessed(kTerm, 1 * kMs);
  forwarding.arrived(kTerm, 2 * kMs);
  EXPECT_EQ(forwarding.take_due(100 * kMs).size(), 1u);
}

TEST(Forwarding, TimeThatWeWereStoppedDoesNotCount) {
  Forwarding forwarding;
  forwarding.arrived(kTerm, 0);
  forwarding.postpone(500 * kMs);
  EXPECT_TRUE(forwarding.take_due(500 * kMs).empty());
  forwarding.witnessed(kTerm, 501 * kMs);
  EXPECT_TRUE(forwarding.take_due(1000 * kMs).empty());
}

TEST(Forwarding, ReportsAreForgotten) {
  Forwarding forwarding;
  forwarding.witnessed(kTerm, 0);
  forwarding.witnessed(kInterrupt, Forwarding::kForgetNs + 1);
  forwarding.arrived(kTerm, Forwarding::kForgetNs + 2);
  EXPECT_TRUE(forwarding.next_due_ns());
}

// In a child process, whose mask and children are its own.
template <typename F>
void in_child(F body) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::setpgid(0, 0);
    body();
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
}

std::vector<Signal> reports(Witness& witness, int wait_ms) {
  pollfd entry{witness.fd(), POLLIN, 0};
  ::poll(&entry, 1, wait_ms);
  return witness.read();
}

TEST(Witness, ReportsWhatTheGroupGetsAndNothingElse) {
  in_child([] {
    auto signals = Signals::take_over();
    ASSERT_TRUE(signals);
    auto witness = Witness::start();
    ASSERT_TRUE(witness);
    ::kill(::getpid(), SIGTERM);
    EXPECT_EQ(numbers(signals->read()), std::vector{SIGTERM});
    EXPECT_TRUE(reports(*witness, 20).empty());
    ::kill(0, SIGUSR1);
    const auto own = signals->read();
    EXPECT_EQ(numbers(own), std::vector{SIGUSR1});
    const auto seen = reports(*witness, 10'000);
    ASSERT_EQ(numbers(seen), std::vector{SIGUSR1});
    EXPECT_EQ(seen[0].sender, own[0].sender);
    EXPECT_EQ(seen[0].code, own[0].code);
  });
}

TEST(Witness, WhatItDidNotComeToReportIsSeenPending) {
  in_child([] {
    auto signals = Signals::take_over();
    auto witness = Witness::start();
    ASSERT_TRUE(witness);
    ::kill(witness->pid(), SIGSTOP);
    int status;
    ASSERT_EQ(::waitpid(witness->pid(), &status, WUNTRACED), witness->pid());
    EXPECT_FALSE(witness->has_pending(SIGTERM));
    ::kill(0, SIGTERM);
    EXPECT_TRUE(witness->has_pending(SIGTERM));
  });
}

TEST(Signals, GivesBackWhatItFound) {
  in_child([] {
    ::signal(SIGCHLD, SIG_IGN);
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR2);
    ::sigprocmask(SIG_SETMASK, &mask, nullptr);
    const auto signals = Signals::take_over();
    ASSERT_TRUE(signals);
    signals->give_back();
    struct sigaction action;
    ::sigaction(SIGCHLD, nullptr, &action);
    EXPECT_EQ(action.sa_handler, SIG_IGN);
    ::sigaction(SIGPIPE, nullptr, &action);
    EXPECT_EQ(action.sa_handler, SIG_DFL);
    sigset_t now;
    ::sigprocmask(SIG_SETMASK, nullptr, &now);
    EXPECT_TRUE(sigismember(&now, SIGUSR2));
    EXPECT_FALSE(sigismember(&now, SIGTERM));
    EXPECT_FALSE(sigismember(&now, SIGCHLD));
  });
}

}  // namespace
}  // namespace stepscope::cli
