#include "cli/trial_watch.h"

#include <algorithm>

#include "cli/machine_limits.h"

namespace stepscope::cli {
namespace {

constexpr double kMemoryFull = 0.95;

}  // namespace

void TrialWatch::poll(const std::vector<sampler::Process>& ranks, int64_t now_ns, bool measuring) {
  if (now_ns - sampled_ns_ < every_ns_) return;
  sampled_ns_ = now_ns;
  if (ranks.empty()) return;
  const auto samples = sampler_.sample(ranks, now_ns, node_);
  if (machine_.cores <= 0) machine_ = machine_limits(ranks.front().pid);
  int64_t workers_bytes = 0;
  double cores = 0;
  bool with_cores = !samples.empty();
  for (const auto& [rank, sample] : samples) {
    workers_bytes += sample.worker_pss_bytes.value_or(0);
    with_cores = with_cores && sample.cpu_cores.has_value();
    cores += sample.cpu_cores.value_or(0);
    if (sample.anon_bytes)
      seen_.rank_bytes = std::max(seen_.rank_bytes.value_or(0), *sample.anon_bytes);
    if (workers_ > 0 && sample.worker_pss_bytes.value_or(0) > 0)
      seen_.worker_bytes =
          std::max(seen_.worker_bytes.value_or(0), *sample.worker_pss_bytes / workers_);
  }
  if (measuring && with_cores) used_cores_.add(cores);
  if (node_.memory_bytes.count == 0) return;
  const auto used = static_cast<int64_t>(node_.memory_bytes.peak);
  seen_.memory_used_bytes = std::max<int64_t>(0, used - workers_bytes);
  if (machine_.memory_limit_bytes &&
      static_cast<double>(used) > kMemoryFull * static_cast<double>(*machine_.memory_limit_bytes))
    full_ = "it filled the memory: " + std::to_string(used >> 20) + " of " +
            std::to_string(*machine_.memory_limit_bytes >> 20) + " MiB (" + machine_.memory_reason +
            ")";
}

tuner::Seen TrialWatch::seen(int local_ranks) const {
  tuner::Seen out = seen_;
  const double busy =
      std::min(machine_.cores, static_cast<double>(std::max(1, workers_) * local_ranks));
  out.workers_wait =
      used_cores_.count > 0 && used_cores_.average().value_or(0) < tuner::kIdleShare * busy;
  return out;
}

}  // namespace stepscope::cli
