// Ranks without a model, for the cost of what stands behind them: R processes that each record a typical step S times a
// second for T seconds and otherwise sleep. `bench_ranks R S T`, under `stepscope run`. A rank that is alone prints each
// step as it ends, with the time: `step N UNIX_NS`.
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/clock.h"
#include "recorder/recorder.h"

namespace {

using stepscope::monotonic_ns;
using stepscope::recorder::Recorder;

void sleep_until(int64_t ns) {
  const timespec at{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr);
}

int rank(int number, int ranks, int steps_per_s, int seconds) {
  const char* folder = std::getenv("STEPSCOPE_SEGMENTS");
  if (folder == nullptr) return 2;
  stepscope::recorder::OpenOptions options;
  options.folder = folder;
  options.rank = options.local_rank = number;
  options.world_size = options.local_world_size = ranks;
  Recorder& recorder = Recorder::instance();
  if (!recorder.open(options)) return 3;
  const int64_t period_ns = 1'000'000'000 / steps_per_s;
  int64_t next_ns = monotonic_ns();
  for (int step = 0; step < steps_per_s * seconds; ++step) {
    recorder.fetch_begin(1, true);
    recorder.fetch_end(32);
    recorder.zero_grad();
    recorder.forward_begin(true, true);
    sleep_until(next_ns += period_ns);
    recorder.forward_end(false);
    recorder.backward_begin(true);
    recorder.ready();
    recorder.backward_end(false, true);
    recorder.optimizer_begin(1);
    recorder.optimizer_end(1);
    if (ranks > 1) continue;
    std::printf("step %d %lld\n", step, static_cast<long long>(stepscope::wall_ns()));
    std::fflush(stdout);
  }
  recorder.close();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: bench_ranks RANKS STEPS_PER_S SECONDS\n", stderr);
    return 2;
  }
  const int ranks = std::atoi(argv[1]), steps_per_s = std::atoi(argv[2]),
            seconds = std::atoi(argv[3]);
  for (int number = 0; number < ranks; ++number)
    if (fork() == 0) _exit(rank(number, ranks, steps_per_s, seconds));
  int worst = 0;
  for (int status = 0; wait(&status) > 0;)
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) worst = 1;
  return worst;
}
