// What a loader's sums say: where the time of making a batch goes, how busy its workers are, how
// the training process waits for it.
//
//   one worker's time:   fetch | wait            busy = fetch / (fetch + wait)
//   fetch = collate + decode + open + transforms + own     own: the dataset's code and what it reads
//   the same time, by what the processor did: computing + no core + waiting (files, network, sleep)
//
// Thread safety: pure. Lifetime: keeps a pointer to the history. Invariant: shares are 0 to 1 of
// fetch; what was not measured is absent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/history.h"

namespace stepscope::engine {

struct NamedShare {
  std::string name;
  double share = 0, ms = 0;  // of fetch; a batch
};

struct WorkerView {
  const LoaderWorker* history = nullptr;
  std::optional<double> batch_ms, busy_share, core_wait_share;
  double late_share = 0;  // of the time that the training process waited for this loader
};

struct LoaderView {
  explicit LoaderView(const LoaderHistory& loader);

  const LoaderHistory* history;
  bool inside = false;  // the making of batches was seen
  double batches = 0, samples = 0;
  std::optional<double> batch_ms, batch_p50_ms, batch_p95_ms, batch_p99_ms;
  std::optional<double> busy_share;
  // of fetch
  double collate_share = 0, decode_share = 0, open_share = 0, transform_share = 0, own_share = 0;
  std::optional<double> cpu_share, core_wait_share, off_cpu_share;  // workers alone
  double storage_share = 0;  // opening, reading, waiting for them, as far as it can be told
  double threads = 0;        // further threads that were in transforms or decoding at a time
  std::vector<NamedShare> transforms;  // largest first
  // a batch, ms
  double pickle_ms = 0, receive_ms = 0, unpickle_ms = 0, pin_ms = 0;
  double handover_share = 0;   // collate, pickle, pipe, unpickle of all that, fetch included
  double bytes_per_batch = 0;  // through the pipe
  double shared_bytes_per_batch = 0;
  double opens_per_batch = 0, faults_per_batch = 0, major_faults_per_batch = 0;
  std::optional<double> read_bytes_per_batch, storage_bytes_per_batch;
  std::optional<double> wait_p50_ms, wait_p95_ms, wait_p99_ms, ready_share;
  std::optional<double> depth_p05, depth_p50;
  std::vector<WorkerView> workers;
};

// The loader that feeds training on this rank; nothing when none was seen.
const LoaderHistory* training_loader(const RunHistory& run, int32_t rank);

}  // namespace stepscope::engine
