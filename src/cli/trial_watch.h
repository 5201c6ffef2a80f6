// What a trial takes from the machine while it goes on, and what it may take.
//
// Thread safety: one owner. Invariant: a reading that never came is absent in seen().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sampler/sampler.h"
#include "tuner/limits.h"

namespace stepscope::cli {

class TrialWatch {
 public:
  // workers: of each rank. every_ns: between two readings.
  explicit TrialWatch(int workers, int64_t every_ns = 500'000'000)
      : workers_(workers), every_ns_(every_ns) {}

  // Reads, if the last reading is old enough. measuring: the loop is beyond its warm-up.
  void poll(const std::vector<sampler::Process>& ranks, int64_t now_ns, bool measuring);

  const std::string& full() const { return full_; }  // why it must end; empty: it need not
  const tuner::Machine& machine() const { return machine_; }
  tuner::Seen seen(int local_ranks) const;  // without what is to be known of batches

 private:
  int workers_;
  int64_t every_ns_;
  sampler::Sampler sampler_;
  NodeHistory node_;
  tuner::Machine machine_;
  tuner::Seen seen_;
  Gauge used_cores_;
  std::string full_;
  int64_t sampled_ns_ = 0;
};

}  // namespace stepscope::cli
