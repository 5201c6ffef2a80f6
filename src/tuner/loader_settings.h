// What can be changed about a DataLoader without changing which samples it gives.
//
// Thread safety: plain values, pure functions. Invariant (clean()): without workers there is no
// prefetching, nothing to keep alive, no start method and no thread limit; so equal behaviour means
// equal settings.
#pragma once

#include <compare>
#include <string>
#include <utility>
#include <vector>

namespace stepscope::tuner {

struct LoaderSettings {
  int num_workers = 0;
  int prefetch_factor = 0;  // batches a worker; 0 without workers
  bool persistent_workers = false;
  bool pin_memory = false;
  bool batch_wise = false;                // index plain tensors a batch at a time
  int worker_threads = 0;                 // of each worker's libraries; 0: as it is
  std::string multiprocessing_context{};  // empty: the system's default

  auto operator<=>(const LoaderSettings&) const = default;
};

LoaderSettings clean(LoaderSettings settings);

// What it takes from the machine, for choosing between equals: workers first.
int cost(const LoaderSettings& settings);

// {"num_workers", "2"}, ...: those that a DataLoader with such workers has. Booleans as Python
// writes them.
std::vector<std::pair<std::string, std::string>> fields(const LoaderSettings& settings);

// "num_workers=2, prefetch_factor=4, persistent_workers=True": as arguments in Python.
std::string as_arguments(const LoaderSettings& settings);

}  // namespace stepscope::tuner
