// What the tuner may try: which settings can differ without changing the samples, and the grid that
// they span.
//
// Thread safety: plain values, pure functions. Invariant: every candidate is clean(), and the grid
// holds each once, the user's own first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tuner/loader_settings.h"

namespace stepscope::tuner {

struct Space {
  LoaderSettings user;
  int most_workers = 0;             // limits.h
  int crowded_above = 0;            // workers that have a core each; 0: not known
  int64_t most_queued = INT64_MAX;  // batches of all workers of a rank: shared memory, open files
  bool change_workers = true;       // false: an IterableDataset that every worker would repeat
  bool persist = true;              // false: the dataset keeps its epoch in itself
  bool pin = false;                 // an accelerator is there
  bool batch_wise = false;          // plain tensors with the default collate
  bool limit_threads = false;       // a library with threads of its own is loaded
  std::vector<std::string> contexts{};  // other start methods worth a trial
};

inline constexpr int kPrefetch[] = {2, 4, 8};

bool fits(const Space& space, const LoaderSettings& settings);  // most_queued

// 0, 1, 2, 3, 4, 6, 8, 12, ... up to most_workers; the user's among them. Ascending.
std::vector<int> worker_ladder(const Space& space);

// What the trials of worker numbers have in common.
LoaderSettings with_workers(const Space& space, int num_workers);

// All combinations, for comparison with an exhaustive search and to say how many there are.
std::vector<LoaderSettings> grid(const Space& space);

}  // namespace stepscope::tuner
