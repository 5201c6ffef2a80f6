#include "sampler/cgroup.h"

#include <algorithm>
#include <sstream>

#include "sampler/proc.h"

namespace stepscope::sampler {
namespace {

constexpr int64_t kNoLimit = int64_t{1}
                             << 60;  // v1 writes "no limit" as the largest page-aligned number

std::string unescape(const std::string& text) {  // mountinfo writes a blank as \040
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                               (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

bool has_word(const std::string& list, const std::string& word) {
  std::istringstream in(list);
  for (std::string part; std::getline(in, part, ',');)
    if (part == word) return true;
  return false;
}

struct Mount {
  std::string root, point;
};

std::optional<Mount> find_mount(const std::string& root, int version,
                                const std::string& controller) {
  const auto text = read_file(root + "/proc/self/mountinfo");
  if (text) {
    std::istringstream lines(*text);
    for (std::string line; std::getline(lines, line);) {
      const size_t dash = line.find(" - ");
      if (dash == std::string::npos) continue;
      std::string id, parent, device, mount_root, point, type, source, options;
      std::istringstream(line.substr(0, dash)) >> id >> parent >> device >> mount_root >> point;
      std::istringstream(line.substr(dash + 3)) >> type >> source >> options;
      const bool matches =
          version == 2 ? type == "cgroup2" : type == "cgroup" && has_word(options, controller);
      if (matches) return Mount{unescape(mount_root), unescape(point)};
    }
    return std::nullopt;
  }
  return Mount{"/", version == 2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/" + controller};
}

// The group's path below the mount's root; "" when it is outside what is mounted (a container).
std::string below(const std::string& mount_root, const std::string& path) {
  if (!path.starts_with('/') || path.find("/..") != std::string::npos || path == "/") return "";
  if (mount_root == "/") return path;
  if (path == mount_root || !path.starts_with(mount_root + "/")) return "";
  return path.substr(mount_root.size());
}

std::optional<std::string> group_path(const std::string& text, int version,
                                      const std::string& controller) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (version == 2 ? controllers.empty() : has_word(controllers, controller))
      return line.substr(second + 1);
  }
  return std::nullopt;
}

std::optional<double> quota_cores(int version, const std::string& folder) {
  std::optional<int64_t> quota, period;
  if (version == 2) {
    const auto text = read_file(folder + "/cpu.max");
    if (!text) return std::nullopt;
    std::string first, second;
    std::istringstream(*text) >> first >> second;
    quota = parse_int(first);  // "max" is no number: no quota
    period = parse_int(second);
  } else {
    const auto q = read_file(folder + "/cpu.cfs_quota_us");
    const auto p = read_file(folder + "/cpu.cfs_period_us");
    if (!q || !p) return std::nullopt;
    quota = parse_int(*q);
    period = parse_int(*p);
  }
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

}  // namespace

Cgroup find_cgroup(const std::string& root, int32_t pid, const std::string& controller) {
  const auto text = read_file(pid_file(root, pid, "cgroup"));
  if (!text) return {};
  for (const int version : {1, 2}) {
    const auto path = group_path(*text, version, controller);
    const auto mount = path ? find_mount(root, version, controller) : std::nullopt;
    if (!mount) continue;
    Cgroup group{version, {}};
    for (std::string at = below(mount->root, *path);; at.resize(at.rfind('/'))) {
      group.levels.push_back({root + mount->point + at, at.empty() ? "/" : at});
      if (at.empty()) break;
    }
    return group;
  }
  return {};
}

std::optional<CpuQuota> tightest_cpu_quota(const Cgroup& cpu) {
  std::optional<CpuQuota> tightest;
  for (const auto& level : cpu.levels) {
    const auto cores = quota_cores(cpu.version, level.folder);
    if (cores && (!tightest || *cores < tightest->cores)) tightest = CpuQuota{*cores, level.name};
  }
  return tightest;
}

std::optional<CgroupMemory> tightest_memory_limit(const Cgroup& memory) {
  std::optional<CgroupMemory> tightest;
  for (const auto& level : memory.levels) {
    const auto text =
        read_file(level.folder + (memory.version == 2 ? "/memory.max" : "/memory.limit_in_bytes"));
    const auto bytes = text ? parse_int(*text) : std::nullopt;
    if (!bytes || *bytes < 0 || *bytes >= kNoLimit) continue;
    if (!tightest || *bytes < tightest->limit_bytes)
      tightest = CgroupMemory{*bytes, level.name, level.folder, memory.version};
  }
  return tightest;
}

std::optional<int64_t> memory_in_use(const CgroupMemory& group) {
  const bool v2 = group.version == 2;
  const auto usage_text =
      read_file(group.folder + (v2 ? "/memory.current" : "/memory.usage_in_bytes"));
  const auto stat = read_file(group.folder + "/memory.stat");
  const auto usage = usage_text ? parse_int(*usage_text) : std::nullopt;
  if (!usage || !stat) return std::nullopt;
  // The file lists leave out shared memory (/dev/shm), which cannot be given back.
  const auto active = value_of(*stat, v2 ? "active_file" : "total_active_file");
  const auto inactive = value_of(*stat, v2 ? "inactive_file" : "total_inactive_file");
  if (!active || !inactive) return std::nullopt;
  return std::max<int64_t>(0, *usage - *active - *inactive);
}

std::optional<Throttling> throttling(const Cgroup& cpu) {
  std::optional<Throttling> most;
  for (const auto& level : cpu.levels) {
    const auto text = read_file(level.folder + "/cpu.stat");
    if (!text) continue;
    const auto periods = value_of(*text, "nr_periods");
    const auto throttled = value_of(*text, "nr_throttled");
    if (!periods || !throttled || *periods <= 0) continue;
    if (!most || *throttled > most->throttled) most = Throttling{*periods, *throttled};
  }
  return most;
}

}  // namespace stepscope::sampler
