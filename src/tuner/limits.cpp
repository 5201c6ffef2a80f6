#include "tuner/limits.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace stepscope::tuner {
namespace {

constexpr int kMost = 256;

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string size(double bytes) {
  const char* unit = "B";
  for (const char* next : {"kB", "MB", "GB", "TB"}) {
    if (bytes < 1000) break;
    bytes /= 1000;
    unit = next;
  }
  char text[32];
  std::snprintf(text, sizeof text, bytes < 10 ? "%.2g %s" : "%.0f %s", bytes, unit);
  return text;
}

int whole(double workers) {
  return static_cast<int>(std::clamp(std::floor(workers), 0.0, static_cast<double>(kMost)));
}

std::string ranks(const Machine& machine) {
  return std::to_string(machine.local_ranks) + (machine.local_ranks == 1 ? " rank" : " ranks");
}

Limit cores(const Machine& machine, const Seen& seen) {
  if (machine.cores <= 0) return {"cores", std::nullopt, "usable cores: not known"};
  const double each = machine.cores / machine.local_ranks;
  int workers = std::max(1, whole(each));
  std::string text = number(machine.cores) + " usable cores (" + machine.cores_reason + ") / " +
                     ranks(machine) + " = " + std::to_string(workers);
  if (seen.workers_wait) {
    workers *= kWorkersPerCore;
    text += ", x " + std::to_string(kWorkersPerCore) +
            " because cores stayed idle = " + std::to_string(workers);
  }
  return {"cores", workers, text};
}

Limit memory(const Machine& machine, const Seen& seen) {
  if (!machine.memory_limit_bytes || !seen.memory_used_bytes)
    return {"memory", std::nullopt, "memory: not known"};
  const bool measured = seen.worker_bytes.has_value();
  const auto each = static_cast<double>(seen.worker_bytes.value_or(seen.rank_bytes.value_or(0)));
  if (each <= 0) return {"memory", std::nullopt, "memory of a worker: not known"};
  const auto limit = static_cast<double>(*machine.memory_limit_bytes);
  const auto used = static_cast<double>(*seen.memory_used_bytes);
  const double room = std::max(0.0, kMemoryShare * limit - used);
  const int workers = whole(room / each / machine.local_ranks);
  return {"memory", workers,
          "(" + number(kMemoryShare) + " x " + size(limit) + " (" + machine.memory_reason + ") - " +
              size(used) + " in use) / " + size(each) + " a worker" +
              (measured ? "" : " (as the training process)") + " / " + ranks(machine) + " = " +
              std::to_string(workers)};
}

Limit shm(const Machine& machine, const Seen& seen, int prefetch_factor) {
  if (!machine.shm_free_bytes || !seen.batch_bytes || *seen.batch_bytes <= 0)
    return {"shm", std::nullopt, "/dev/shm or the size of a batch: not known"};
  const int queued = std::max(1, prefetch_factor);
  const double room = kShmShare * static_cast<double>(*machine.shm_free_bytes);
  const int workers =
      whole(room / static_cast<double>(*seen.batch_bytes) / queued / machine.local_ranks);
  return {"shm", workers,
          number(kShmShare) + " x " + size(static_cast<double>(*machine.shm_free_bytes)) +
              " free in /dev/shm / " + size(static_cast<double>(*seen.batch_bytes)) +
              " a batch / prefetch_factor " + std::to_string(queued) + " / " + ranks(machine) +
              " = " + std::to_string(workers)};
}

Limit open_files(const Machine& machine, const Seen& seen, int prefetch_factor) {
  if (!machine.open_files) return {"open_files", std::nullopt, "open files: not known"};
  const int64_t each =
      kFilesPerWorker + std::max<int64_t>(1, seen.batch_tensors) * std::max(1, prefetch_factor);
  const int workers =
      whole(static_cast<double>(*machine.open_files - kFilesAtRest) / static_cast<double>(each));
  return {"open_files", workers,
          "(" + std::to_string(*machine.open_files) + " open files - " +
              std::to_string(kFilesAtRest) + ") / " + std::to_string(each) +
              " a worker = " + std::to_string(workers)};
}

}  // namespace

std::vector<Limit> limits(const Machine& machine, const Seen& seen, int prefetch_factor) {
  return {cores(machine, seen), memory(machine, seen), shm(machine, seen, prefetch_factor),
          open_files(machine, seen, prefetch_factor)};
}

std::optional<int64_t> most_queued(const Machine& machine, const Seen& seen) {
  std::optional<int64_t> most;
  if (machine.shm_free_bytes && seen.batch_bytes && *seen.batch_bytes > 0)
    most = static_cast<int64_t>(kShmShare * static_cast<double>(*machine.shm_free_bytes)) /
           *seen.batch_bytes / machine.local_ranks;
  if (machine.open_files) {
    const int64_t files =
        (*machine.open_files - kFilesAtRest) / std::max<int64_t>(1, seen.batch_tensors);
    most = std::min(most.value_or(files), files);
  }
  return most;
}

int most_workers(const std::vector<Limit>& limits, int user_workers) {
  int most = kMost;
  for (const Limit& limit : limits)
    if (limit.workers) most = std::min(most, *limit.workers);
  return std::max(most, user_workers);
}

}  // namespace stepscope::tuner
