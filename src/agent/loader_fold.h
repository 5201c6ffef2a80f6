// Adds up the events of one segment of role kWorker: a DataLoader's worker, or a training process's
// own loading. What they add up to is taken from here again and again, and given to the run's
// loaders once it is known whose it is.
//
// Thread safety: none, one owner. Bounded: kMaxLoaders loaders, and what a LoaderHistory may hold.
// Every field of an event may be anything: numbers are cut, sums stop at LoaderHistory::kMost.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "model/history.h"
#include "ring/reader.h"

namespace stepscope::agent {

// A process that a training process started as a worker.
struct StartedWorker {
  int32_t pid = 0, loader = 0, worker = 0;
};

// Of one segment since the last take().
struct LoaderDelta {
  std::map<int32_t, LoaderHistory> loaders;  // by number; in a worker's segment the only one is 0
  std::vector<StartedWorker> started;
  bool empty() const { return loaders.empty() && started.empty(); }
};

class LoaderFold {
 public:
  using NameOf = std::function<std::string(uint8_t)>;

  void push(const ring::EventValue& event, const NameOf& name_of);
  const LoaderDelta& delta() const { return delta_; }
  LoaderDelta take() { return std::exchange(delta_, {}); }
  bool of_worker() const { return !of_training_; }

 private:
  LoaderHistory& loader(int32_t number);
  void close_batches(const ring::EventValue& event);

  LoaderDelta delta_;
  LoaderSums parts_{};  // up to the next kLoaderBatches
  std::map<uint8_t, int64_t> transforms_;
  std::map<uint8_t, std::string> names_;
  bool of_training_ = false;  // it told of a loader
};

// The loader of this rank, made when it is new; nothing when there is no room.
LoaderHistory* find_loader(RunHistory& run, int32_t rank, int32_t number);
// How it is set up, its dataset, and sums.
void add_to(LoaderHistory& loader, const LoaderHistory& delta);

}  // namespace stepscope::agent
