// kill -9 at random instants: what a dead process leaves is readable, and every step that it
// finished is there.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "recorder/recorder.h"
#include "ring/reader.h"
#include "ring/test_folder.h"

namespace stepscope::recorder {
namespace {

// Shared with the child: what it had finished at the moment of its death.
struct Progress {
  std::atomic<int> ready{0};
  std::atomic<uint64_t> steps_finished{0};
};

[[noreturn]] void child(const std::string& folder, Progress* progress, int work) {
  Recorder& r = Recorder::instance();
  OpenOptions options;
  options.folder = folder;
  if (!r.open(options)) _exit(1);
  r.name("mine");
  std::thread autograd([&] {
    for (;;) {
      r.ready();
      sched_yield();
    }
  });
  progress->ready.store(1);
  for (;;) {
    r.enter_step();
    r.fetch_begin(1, true);
    r.fetch_end(32);
    r.forward_begin(true, true);
    r.forward_end(false);
    r.backward_begin(true);
    r.backward_end(false, true);
    r.optimizer_begin(5);
    r.optimizer_end(5);
    r.exit_step(false);
    progress->steps_finished.fetch_add(1, std::memory_order_release);
    for (int i = 0; i < work; ++i) asm volatile("" ::: "memory");
  }
}

struct Seen {
  uint64_t steps = 0, events = 0, lost = 0, next = 0;

  void take(ring::Reader& reader, bool dead) {
    std::vector<ring::EventValue> out(512);
    for (ring::Reader::Drained d{1, next, 0}; d.count > 0;) {
      d = reader.drain(next, out);
      for (size_t i = 0; i < d.count; ++i) {
        ASSERT_EQ(out[i].index, next + i);
        steps += out[i].code == wire::EventCode::kStepExit;
      }
      events += d.count;
      lost += d.lost;
      next = d.next_index;
      if (!dead) reader.release(next);
    }
  }
};

TEST(KillNine, EveryFinishedStepOfADeadProcessIsRead) {
  const char* given = std::getenv("STEPSCOPE_TEST_SEED");
  const unsigned seed =
      given != nullptr ? static_cast<unsigned>(std::atoi(given)) : std::random_device{}();
  std::printf("seed %u (STEPSCOPE_TEST_SEED=%u repeats it)\n", seed, seed);
  std::mt19937 random(seed);
  void* shared =
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  int compared = 0;
  for (int round = 0; round < 60; ++round) {
    ring::TestFolder folder;
    auto* progress = new (shared) Progress;
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0)
      child(folder.path(), progress, round % 4 == 0 ? 0 : 20'000);  // some fill their ring
    // Two thirds die while their ring is drained, one third unread. One in six may die before it
    // has a segment.
    const bool drained = round % 3 != 0;
    while (round % 6 != 0 && progress->ready.load() == 0) sched_yield();
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::microseconds(random() % 8000);
    std::optional<ring::Reader> reader;
    Seen seen;
    while (std::chrono::steady_clock::now() < deadline) {
      if (!drained || progress->ready.load() == 0) continue;
      if (!reader) {
        auto opened = ring::Reader::open(folder.only_file());
        ASSERT_TRUE(opened) << opened.error().message;
        reader.emplace(std::move(*opened));
      }
      seen.take(*reader, false);
    }
    kill(pid, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child ended by itself: " << status;
    const uint64_t finished = progress->steps_finished.load(std::memory_order_acquire);

    for (const std::string& name : folder.names()) {
      if (!name.starts_with("seg-")) {  // died before it had its name: nobody reads it
        EXPECT_EQ(progress->ready.load(), 0);
        continue;
      }
      if (!reader) {
        auto opened = ring::Reader::open(folder.path() + "/" + name);
        ASSERT_TRUE(opened) << opened.error().message;
        reader.emplace(std::move(*opened));
      }
      seen.take(*reader, true);
      EXPECT_EQ(reader->identity().pid, pid);
      EXPECT_EQ(seen.lost, 0u);
      EXPECT_FALSE(reader->oldest(seen.next));  // nothing stands behind what was read
    }
    if (!reader || reader->dropped() > 0) continue;  // then the ring held only a part of them
    ASSERT_GE(seen.steps, finished);
    ASSERT_LE(seen.steps, finished + 1);
    ++compared;
  }
  std::printf("%d of 60 compared step by step\n", compared);
  EXPECT_GE(compared, 20);
  munmap(shared, sizeof(Progress));
}

}  // namespace
}  // namespace stepscope::recorder
