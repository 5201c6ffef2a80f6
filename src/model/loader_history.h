// What is kept of a DataLoader: how it is set up, where its workers' time went, and how the
// training process waited for it. Sums over the run, bounded at any length.
//
// Thread safety: plain values; one owner. Invariants: a loader made anew each epoch with the same
// set-up is the same loader here; sums never overflow (they stop at kMost); what was not measured
// is 0 where `seen` or a count says that nothing was.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/loader_part.h"

namespace stepscope {

// Durations by size: four bins an octave, so a quantile is right within 10 %.
class DurationBins {
 public:
  static constexpr size_t kBins = 160;
  void add(int64_t ns, int64_t times = 1);
  void add(const DurationBins& other);
  int64_t count() const;
  std::optional<double> quantile(double q) const;  // ns; none when empty
  std::map<int32_t, int64_t> bins;                 // bin -> times
};

using LoaderSums = std::array<int64_t, kLoaderParts>;  // by LoaderPart

struct LoaderWorker {
  int32_t worker = 0;
  int32_t pid = 0;  // of its newest process
  int64_t processes = 0;
  int64_t batches = 0, samples = 0, detail_batches = 0;
  LoaderSums sums{};
  DurationBins batch_ns;           // length of its batches
  int64_t asked = 0, late_ns = 0;  // batches the training process took from it; waited for it
  int64_t read_bytes = 0, storage_bytes = 0;  // by read calls; that came from storage
  bool io_seen = false;                       // /proc/PID/io could be read

  int64_t& operator[](LoaderPart part) { return sums[static_cast<size_t>(part)]; }
  int64_t operator[](LoaderPart part) const { return sums[static_cast<size_t>(part)]; }
};

struct LoaderHistory {
  static constexpr size_t kMaxWorkers = 256, kMaxTransforms = 64, kMaxDepth = 64;
  static constexpr int64_t kMost = int64_t{1} << 60;

  int32_t rank = 0, loader = 0;  // number among the rank's loaders, from 1
  std::string dataset;           // its class
  int32_t workers = 0, prefetch_factor = 0, batch_size = 0;  // batch_size 0: none, or not known
  uint8_t flags = 0;                                         // LoaderFlags
  int64_t starts = 0, start_ns = 0;     // how often workers were started, and how long that took
  int64_t epochs = 0;                   // iterations begun
  std::vector<LoaderWorker> by_worker;  // with num_workers=0 one, the training process
  std::map<std::string, int64_t> transform_ns;  // exclusive, of batches looked at
  // The training process's side.
  int64_t asked = 0, asked_training = 0;  // batches taken; with gradients on
  int64_t waited_ns = 0;
  int64_t ready = 0;           // batches that were there when they were asked for
  DurationBins wait_ns;        // of each taking
  std::vector<int64_t> depth;  // [n]: how often n batches lay ready; the last: that or more
  LoaderSums main{};           // kReceive, kUnpickle, kPin

  bool has(LoaderFlags flag) const { return (flags & flag) != 0; }
  LoaderWorker& worker(int32_t number);  // made when it is new; the last one when there is no room
  int64_t sum(LoaderPart part) const;    // over workers
  int64_t batches() const;
  int64_t samples() const;
};

inline void add_bounded(int64_t& sum, int64_t value) {
  sum = sum > LoaderHistory::kMost - value ? LoaderHistory::kMost : sum + value;
}

// One line of words, for run.db and the wire; nothing when it is not one.
std::string to_text(const LoaderHistory& loader);
std::optional<LoaderHistory> loader_from_text(std::string_view text);

}  // namespace stepscope
