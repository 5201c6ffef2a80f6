// Why input is slow: one rule a cause, each a file input_cause_<cause>.cpp. input_causes.cpp lists
// them in the order in which they are asked: what hides other causes comes first.
//
// What mending would save is computed with one model of a step:
//
//   step = max(rest, load)          load = batch / workers, or rest + batch without workers
//   and no more workers compute at a time than there are cores beside the training
//
// Thread safety: pure functions. Lifetime: an InputCase is only valid during diagnose().
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/loader_view.h"
#include "model/finding.h"

namespace stepscope::engine {

struct InputCase {
  const LoaderView& loader;
  double step_ms = 0;
  double fetch_share = 0;  // of the step: waiting for batches
  double epoch_share = 0;  // of the time: epoch starts
  double batches_per_step = 1;
  // of the node
  double cores = 0;            // usable by this rank; 0: not known
  std::string cores_why = {};  // "4 cores are usable (affinity) for 2 ranks on this node"
  int32_t ranks = 1;           // on the node
  std::optional<double> throttled_share = {};
  std::optional<double> train_core_wait_share = {};  // of the training process: it had no core
  std::optional<double> train_cores = {};  // that the job keeps busy, all of its processes
  std::optional<double> memory_left_bytes = {},
                        worker_bytes = {};  // until the limit; of one worker

  int32_t workers() const { return loader.history->workers; }
  double rest_ms() const { return step_ms * (1 - fetch_share); }
  double batch_ms() const { return loader.batch_ms.value_or(0) * batches_per_step; }
  // Share of the time saved with batches that cost `keep` of what they do, and so many workers.
  double saving(double keep, int32_t workers) const;
  double saving(double keep) const { return saving(keep, workers()); }
  // The most workers that cores and memory allow, and why no more.
  struct Room {
    int32_t workers;
    std::string why;
  };
  Room room() const;
};

struct InputCause {
  std::string name = {};   // TOO_FEW_WORKERS, ...
  std::string words = {};  // for the title: "ToTensor takes 72 % of the workers' time"
  double saving = 0;
  std::vector<Evidence> evidence = {};
  std::vector<Advice> advice = {};  // best first
};

using InputCauseRule = std::optional<InputCause> (*)(const InputCase&);

std::optional<InputCause> worker_restart(const InputCase& input);
std::optional<InputCause> gil_bound(const InputCase& input);
std::optional<InputCause> too_many_workers(const InputCase& input);
std::optional<InputCause> handover_bound(const InputCase& input);
std::optional<InputCause> slow_worker(const InputCase& input);
std::optional<InputCause> uneven_samples(const InputCase& input);
std::optional<InputCause> slow_transform(const InputCase& input);
std::optional<InputCause> storage_bound(const InputCase& input);
std::optional<InputCause> decode_bound(const InputCase& input);
std::optional<InputCause> too_few_workers(const InputCase& input);

// The cause; UNKNOWN, with what was seen, when no rule applies.
InputCause input_cause(const InputCase& input);
// "Load in n worker processes ...", with the arithmetic; nothing when that gains nothing.
std::optional<Advice> more_workers(const InputCase& input);

}  // namespace stepscope::engine
