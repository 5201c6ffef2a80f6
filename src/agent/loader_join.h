// Whose loading a segment tells of: a training process says which processes it started as workers
// of which loader, and a worker is found by its pid. What cannot be told yet stays in its fold.
//
// Thread safety: none, one owner. Bounded: pids of kMostPids workers, the oldest forgotten first.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "agent/loader_fold.h"
#include "model/history.h"

namespace stepscope::agent {

class LoaderJoin {
 public:
  static constexpr size_t kMostPids = 4096;

  // rank: of the training process with this pid, once it has one.
  void add(LoaderFold& fold, int32_t pid, std::optional<int32_t> rank, RunHistory& run);
  // Bytes that living workers have read since the last call.
  void sample(RunHistory& run);

 private:
  struct Place {
    int32_t rank = 0, loader = 0, worker = 0;
    // As of the last sample. Not known of a worker that an earlier agent took samples of.
    std::optional<int64_t> read_bytes = 0, storage_bytes = 0;
  };
  void add_training(LoaderFold& fold, int32_t pid, int32_t rank, RunHistory& run);
  Place* place_of(int32_t pid, const RunHistory& run);
  void remember(int32_t pid, Place place);

  std::map<int32_t, Place> places_;
  std::deque<int32_t> pids_;  // oldest first
};

}  // namespace stepscope::agent
