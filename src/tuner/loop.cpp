#include "tuner/loop.h"

#include <algorithm>
#include <numeric>

namespace stepscope::tuner {
namespace {

constexpr int kFirstSteps = 3, kMostQueued = 24;

double ms(int64_t ns) { return static_cast<double>(ns) / 1e6; }

double mean(const double* begin, const double* end) {
  return begin == end ? 0 : std::accumulate(begin, end, 0.0) / static_cast<double>(end - begin);
}

}  // namespace

int warmup_of(const LoaderSettings& settings) {
  return kFirstSteps + std::min(settings.num_workers * settings.prefetch_factor, kMostQueued);
}

void add_epoch_starts(LoopRun& run, const LoaderSettings& settings,
                      const std::vector<double>& start_ms) {
  if (start_ms.empty()) return;
  const bool comes_again = settings.num_workers > 0 && !settings.persistent_workers;
  const double* begin = start_ms.data();
  const double* end = begin + start_ms.size();
  const double start = start_ms.size() > 1 ? mean(begin + 1, end) : comes_again ? *begin : 0;
  const double* waits = run.wait_ms.data();
  if (start > 0)
    run.epoch_start_ms = std::max(0.0, start - mean(waits, waits + run.wait_ms.size()));
}

LoopRun run_of(const std::vector<Fetch>& fetches, int64_t end_ns, const LoaderSettings& settings,
               double steps_per_epoch) {
  LoopRun run;
  run.steps_per_epoch = steps_per_epoch;
  std::vector<double> start_ms;
  const auto warmup = static_cast<size_t>(warmup_of(settings));
  for (size_t i = 0; i < fetches.size(); ++i) {
    const Fetch& fetch = fetches[i];
    const double wait_ms = ms(fetch.got_ns - fetch.asked_ns);
    if (fetch.epoch_start) {
      start_ms.push_back(wait_ms);
    } else if (i >= warmup) {
      const int64_t next_ns = i + 1 < fetches.size() ? fetches[i + 1].asked_ns : end_ns;
      run.step_ms.push_back(ms(next_ns - fetch.asked_ns));
      run.wait_ms.push_back(wait_ms);
    }
  }
  add_epoch_starts(run, settings, start_ms);
  return run;
}

}  // namespace stepscope::tuner
