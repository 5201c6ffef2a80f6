// Finds a process's control groups, v1, v2 and hybrid, and reads their limits: the process's own
// group and every ancestor that this machine (or container) can see.
//
//   /proc/<pid>/cgroup    4:memory:/job/a   (v1, a line a hierarchy)      0::/job/a   (v2)
//   /proc/self/mountinfo  ROOT MOUNTPOINT ... - cgroup SOURCE rw,memory   what is mounted where
//
// Thread safety: pure functions of the files below `root`; reentrant.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stepscope::sampler {

struct CgroupLevel {
  std::string folder;  // to read from, below root
  std::string name;    // as messages say it: "/job/a"
};
struct Cgroup {
  int version = 0;                  // 1 or 2; 0: this controller was not found
  std::vector<CgroupLevel> levels;  // own first, then ancestors
};

Cgroup find_cgroup(const std::string& root, int32_t pid, const std::string& controller);

struct CpuQuota {
  double cores;
  std::string name;  // of the level that sets it
};
std::optional<CpuQuota> tightest_cpu_quota(const Cgroup& cpu);

struct CgroupMemory {
  int64_t limit_bytes;
  std::string name;
  std::string folder;
  int version;
};
std::optional<CgroupMemory> tightest_memory_limit(const Cgroup& memory);
// What of that group's memory cannot be given back at once: its usage without page cache.
std::optional<int64_t> memory_in_use(const CgroupMemory& group);

// Enforcement periods and those in which the group was throttled, of the level throttled most.
struct Throttling {
  int64_t periods, throttled;
};
std::optional<Throttling> throttling(const Cgroup& cpu);

}  // namespace stepscope::sampler
