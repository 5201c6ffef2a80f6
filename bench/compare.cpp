// The engine on simulated ranks, without wire or store. `bench_compare trials N`: of N seeded runs a fault, how many
// are named rightly; `bench_compare healthy N`: false alarms; `bench_compare live N`: the same of runs that are looked
// at while they go on; `bench_compare scale [MOST_RANKS]`: time against ranks.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/clock.h"
#include "simulator/trials.h"

namespace {

using namespace stepscope;
using namespace stepscope::simulator;

int trials(const std::vector<Trial>& all, uint64_t count, bool show) {
  int wrong_of_all = 0;
  for (const Trial& trial : all) {
    uint64_t right = 0;
    const int64_t begin_ns = monotonic_ns();
    for (uint64_t seed = 1; seed <= count; ++seed) {
      const Outcome outcome = trial.run(seed);
      right += outcome.right ? 1 : 0;
      if (!outcome.right && show)
        std::printf("  seed %ju: %s", static_cast<uintmax_t>(seed), outcome.said.c_str());
    }
    wrong_of_all += static_cast<int>(count - right);
    std::printf("%-30s %ju of %ju right  (%.1f %%), %.1f s\n", trial.name,
                static_cast<uintmax_t>(right), static_cast<uintmax_t>(count),
                100.0 * static_cast<double>(right) / static_cast<double>(count),
                static_cast<double>(monotonic_ns() - begin_ns) / 1e9);
    std::fflush(stdout);
  }
  return wrong_of_all;
}

void scale(int most) {
  std::printf("%10s %8s %16s %10s\n", "ranks", "syncs", "ns/rank and sync", "total s");
  constexpr int kSteps = 60;
  for (int ranks = 10; ranks <= most; ranks *= 10) {
    Options options = with(1, ranks, kSteps, "rank=3 add=20%");
    options.syncs = 2;
    RunHistory run = simulate(options);
    const double syncs = 2.0 * static_cast<double>(kSteps - run.settings.warmup_steps);
    const int64_t begin_ns = monotonic_ns();
    run.comparison = engine::compare_ranks(run);
    const auto ns = static_cast<double>(monotonic_ns() - begin_ns);
    std::printf("%10d %8.0f %16.1f %10.3f\n", ranks, syncs, ns / syncs / ranks, ns / 1e9);
    std::fflush(stdout);
  }
}

// Looks after every step of healthy runs: episodes that open and would save 1 %, a million judged syncs.
void live(int runs) {
  double syncs = 0, opened = 0, rank_ns = 0, ranks = 0;
  for (int seed = 1; seed <= runs; ++seed) {
    Draw draw(static_cast<uint64_t>(seed));
    Options options = with(static_cast<uint64_t>(seed), 2 << draw.below(6), 2000, "");
    options.heavy = draw.below(2) == 1;
    Simulator simulator(options);
    RunHistory run = simulator.start();
    for (int64_t step = 1; simulator.step(run); ++step) {
      if (step % 10 != 0) continue;
      const int64_t begin_ns = monotonic_ns();
      run.comparison = engine::compare_ranks(run);
      rank_ns += static_cast<double>(monotonic_ns() - begin_ns);
      ranks += options.ranks;
    }
    syncs += static_cast<double>(run.comparison.steps);
    for (const Episode& e : run.comparison.episodes)
      opened += e.saved_ns >= 0.01 * e.time_ns ? 1 : 0;
  }
  std::printf("%.0f episodes in %.0f healthy syncs; a look costs %.1f us a rank\n", opened, syncs,
              rank_ns / ranks / 1e3);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  const int number = argc > 2 ? std::atoi(argv[2]) : 0;
  if (what == "trials")
    return trials(faults_to_name(), static_cast<uint64_t>(number > 0 ? number : 1000), argc > 3) >
           0;
  if (what == "healthy")
    return trials({{"healthy", [](uint64_t seed) { return healthy(seed); }}},
                  static_cast<uint64_t>(number > 0 ? number : 1000), argc > 3) > 0;
  if (what == "live") {
    live(number > 0 ? number : 50);
    return 0;
  }
  if (what == "scale") {
    scale(number > 0 ? number : 100'000);
    return 0;
  }
  std::fprintf(stderr, "usage: bench_compare trials|healthy|live|scale [N] [show]\n");
  return 2;
}
