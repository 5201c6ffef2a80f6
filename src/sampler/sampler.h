// Host readings of a node and of the run's processes, from /proc and the cgroup tree below a root that tests replace.
//
// Thread safety: one owner. No lock, no thread. Every reading that fails is absent with a reason ("/proc/stat: permission
// denied"), never 0. statm each call; PSS (smaps_rollup, slow on large processes) at most every 10 s and within a time budget.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/history.h"

namespace stepscope::sampler {

struct Process { int32_t pid; int64_t start_ticks; int32_t rank; };

// Field 22 of /proc/<pid>/stat; absent when the process is gone.
std::optional<int64_t> process_start(int32_t pid, const std::string& root = "");
bool process_alive(int32_t pid, int64_t start_ticks, const std::string& root = "");  // a zombie is dead

class Sampler {
 public:
  explicit Sampler(std::string root = "");  // "" reads /proc and /sys, else <root>/proc and <root>/sys

  // Adds one reading to the node's gauges and returns one MemorySample per rank process (its workers included:
  // descendants are found through ppid). `now_ns`: CLOCK_MONOTONIC, given by the caller.
  std::map<int32_t, MemorySample> sample(const std::vector<Process>& ranks, int64_t now_ns, NodeHistory& node);

  // min of affinity, cpuset, quota, own cgroup and its ancestors, v1 and v2. pid: whose cgroup.
  struct Cores { double usable; std::string reason; };
  Cores usable_cores(int32_t pid) const;
  struct MemoryLimit { std::optional<int64_t> bytes; std::string reason; };
  MemoryLimit memory_limit(int32_t pid) const;

 private:
  std::string root_;
  // ...
};

}  // namespace stepscope::sampler
