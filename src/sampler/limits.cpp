// What a process may use at most: cores and memory.
#include <sched.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <sstream>

#include "sampler/cgroup.h"
#include "sampler/proc.h"
#include "sampler/sampler.h"

namespace stepscope::sampler {
namespace {

std::set<int> intersect(const std::set<int>& a, const std::set<int>& b) {
  std::set<int> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::inserter(both, both.begin()));
  return both;
}

std::optional<std::set<int>> affinity(const std::string& root, int32_t pid) {
  if (const auto text = read_file(pid_file(root, pid, "status")))
    if (const auto line = line_of(*text, "Cpus_allowed_list")) return parse_cpu_list(*line);
  cpu_set_t mask;
  if (!root.empty() || sched_getaffinity(pid, sizeof(mask), &mask) != 0) return std::nullopt;
  std::set<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &mask)) cpus.insert(cpu);
  return cpus;
}

std::optional<std::set<int>> online_cpus(const std::string& root) {
  const auto text = read_file(root + "/sys/devices/system/cpu/online");
  return text ? parse_cpu_list(*text) : std::nullopt;
}

}  // namespace

Sampler::Cores Sampler::usable_cores(int32_t pid) const {
  std::optional<std::set<int>> cpus = online_cpus(root_);
  std::string reason = "machine";
  const auto narrow = [&](const std::optional<std::set<int>>& allowed, const std::string& why) {
    if (!allowed) return;
    const std::set<int> both = cpus ? intersect(*cpus, *allowed) : *allowed;
    if (both.empty()) return;
    if (!cpus || both.size() < cpus->size()) reason = why;
    cpus = both;
  };
  const Cgroup cpuset = find_cgroup(root_, pid, "cpuset");
  for (const CgroupLevel& level : cpuset.levels)
    for (const char* file : {"/cpuset.cpus.effective", "/cpuset.effective_cpus", "/cpuset.cpus"})
      if (const auto text = read_file(level.folder + file)) {
        narrow(parse_cpu_list(*text), "cpuset of " + level.name);
        break;
      }
  narrow(affinity(root_, pid), "affinity");
  const auto quota = tightest_cpu_quota(find_cgroup(root_, pid, "cpu"));
  if (quota && (!cpus || quota->cores < static_cast<double>(cpus->size()))) {
    std::ostringstream text;
    text << "cgroup quota " << quota->cores << " of " << quota->name;
    return {quota->cores, text.str()};
  }
  if (!cpus) return {0, "not measured: " + pid_file(root_, pid, "status") + " is not readable"};
  return {static_cast<double>(cpus->size()), reason};
}

Sampler::MemoryLimit Sampler::memory_limit(int32_t pid) const {
  const auto text = read_file(root_ + "/proc/meminfo");
  const auto total_kb = text ? value_of(*text, "MemTotal") : std::nullopt;
  const auto group = tightest_memory_limit(find_cgroup(root_, pid, "memory"));
  const int64_t total = total_kb.value_or(0) * 1024;
  if (group && (total == 0 || group->limit_bytes < total))
    return {group->limit_bytes, "cgroup limit of " + group->name};
  if (total > 0) return {total, "machine"};
  return {std::nullopt, text ? root_ + "/proc/meminfo: no MemTotal" : text.error().message};
}

}  // namespace stepscope::sampler
