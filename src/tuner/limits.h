// How many workers a rank may have on this machine, with the arithmetic.
//
// Thread safety: pure. Invariant: a reading that is absent limits nothing, and its line says so. A
// limit is never below the workers that the user has already: those are theirs to choose.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stepscope::tuner {

struct Machine {  // what may be used, as read
  double cores = 0;
  std::string cores_reason{};
  int local_ranks = 1;
  std::optional<int64_t> memory_limit_bytes{};
  std::string memory_reason{};
  std::optional<int64_t> shm_free_bytes{}, open_files{};  // open_files: of one process
};

struct Seen {                                  // in the runs so far
  std::optional<int64_t> memory_used_bytes{};  // of what the limit is of, without loader workers
  std::optional<int64_t> worker_bytes{};       // of one; absent until a run had workers
  std::optional<int64_t> rank_bytes{};         // of a training process: what a worker may come to
  std::optional<int64_t> batch_bytes{};
  int64_t batch_tensors = 1;
  bool workers_wait = false;  // they used less than kIdleShare of the cores: they wait, not compute
};

inline constexpr double kIdleShare = 0.7;
inline constexpr double kMemoryShare = 0.9;  // of the limit that may be used
inline constexpr double kShmShare = 0.8;     // of what is free
inline constexpr int kWorkersPerCore = 4;    // where they wait
inline constexpr int64_t kFilesAtRest = 128;
inline constexpr int64_t kFilesPerWorker = 8;

struct Limit {
  std::string name;  // "cores", "memory", "shm", "open_files"
  std::optional<int> workers;
  std::string arithmetic;
};
std::vector<Limit> limits(const Machine& machine, const Seen& seen, int prefetch_factor);

// Batches that all workers of a rank may have ready at once; absent: nothing is known against any.
std::optional<int64_t> most_queued(const Machine& machine, const Seen& seen);

// The tightest, at least `user_workers`.
int most_workers(const std::vector<Limit>& limits, int user_workers);

}  // namespace stepscope::tuner
