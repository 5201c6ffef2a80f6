#include "sampler/sampler.h"

#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <numeric>
#include <sstream>

#include "sampler/proc.h"

namespace stepscope::sampler {
namespace {

constexpr int kFullPassEvery = 10;
constexpr int kMaxAncestors = 64;  // a loop in a torn pass over /proc must end
constexpr const char* kTooShort = "the run was too short for two readings";

int64_t ticks_per_second() {
  static const int64_t value = std::max<int64_t>(1, sysconf(_SC_CLK_TCK));
  return value;
}

std::vector<int32_t> all_pids(const std::string& root) {
  std::vector<int32_t> pids;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir((root + "/proc").c_str()), closedir);
  if (!folder) return pids;
  while (const dirent* entry = readdir(folder.get())) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    if (const auto pid = parse_int(entry->d_name)) pids.push_back(static_cast<int32_t>(*pid));
  }
  return pids;
}

struct Statm {
  int64_t rss, anon;
};

std::optional<Statm> read_statm(const std::string& root, int32_t pid) {
  const auto text = read_file(pid_file(root, pid, "statm"), kStatBytes);
  if (!text) return std::nullopt;
  int64_t size = 0, resident = 0, shared = 0;  // shared: pages of files and of shared memory
  if (!(std::istringstream(*text) >> size >> resident >> shared)) return std::nullopt;
  const int64_t page = sysconf(_SC_PAGESIZE);
  return Statm{resident * page, std::max<int64_t>(0, resident - shared) * page};
}

// Ns that the main thread could have run but had no core, since it began.
std::optional<int64_t> read_cpu_wait(const std::string& root, int32_t pid) {
  const auto text = read_file(pid_file(root, pid, "schedstat"), 128);
  int64_t ran_ns = 0, waited_ns = 0;
  if (!text || !(std::istringstream(*text) >> ran_ns >> waited_ns) || waited_ns < 0)
    return std::nullopt;
  return waited_ns;
}

bool counts_as_network(const std::string& name) {
  for (const char* virtual_prefix :
       {"lo", "veth", "docker", "br-", "virbr", "ifb", "dummy", "bond", "cni"})
    if (name.starts_with(virtual_prefix)) return false;
  return name.find('.') == std::string::npos;  // eth0.7 is counted in eth0
}

}  // namespace

std::optional<int64_t> process_start(int32_t pid, const std::string& root) {
  const auto stat = read_stat(root, pid);
  return stat ? std::optional(stat->start_ticks) : std::nullopt;
}

bool process_alive(int32_t pid, int64_t start_ticks, const std::string& root) {
  if (pid <= 0) return false;
  if (const auto stat = read_stat(root, pid))
    return !dead(*stat) && (start_ticks <= 0 || stat->start_ticks == start_ticks);
  if (!root.empty()) return false;
  return kill(pid, 0) == 0 || errno == EPERM;  // /proc is not mounted, or hides the process
}

Sampler::Sampler(std::string root, int64_t pss_budget_ns)
    : root_(std::move(root)), pss_budget_ns_(pss_budget_ns) {}

std::vector<Sampler::Member> Sampler::find_members(const std::vector<Process>& ranks) {
  std::map<int32_t, int32_t> rank_of;
  std::vector<Member> members;
  for (const Process& process : ranks) {
    const auto stat = read_stat(root_, process.pid);
    if (!stat || dead(*stat) ||
        (process.start_ticks > 0 && stat->start_ticks != process.start_ticks))
      continue;
    rank_of[process.pid] = process.rank;
    members.push_back({process.pid, process.rank, false, *stat});
  }
  const std::vector<int32_t> pids = all_pids(root_);
  std::unordered_map<int32_t, int32_t> parents;
  std::unordered_map<int32_t, ProcStat> fresh;
  const bool full_pass = calls_ % kFullPassEvery == 0;
  for (const int32_t pid : pids) {
    const auto known = parents_.find(pid);
    if (!full_pass && known != parents_.end()) {
      parents.emplace(*known);
    } else if (const auto stat = read_stat(root_, pid)) {
      parents[pid] = stat->ppid;
      fresh[pid] = *stat;
    }
  }
  parents_ = std::move(parents);
  for (const auto& [pid, parent] : parents_) {
    if (rank_of.contains(pid)) continue;
    int32_t at = parent;
    for (int i = 0; i < kMaxAncestors && at > 1 && !rank_of.contains(at); ++i) {
      const auto up = parents_.find(at);
      at = up == parents_.end() ? 0 : up->second;
    }
    if (!rank_of.contains(at)) continue;
    const auto seen = fresh.find(pid);
    const auto stat = seen != fresh.end() ? std::optional(seen->second) : read_stat(root_, pid);
    if (stat) members.push_back({pid, rank_of[at], true, *stat});
  }
  return members;
}

std::optional<double> Sampler::rate(Rate& last, std::optional<int64_t> value,
                                    int64_t now_ns) const {
  if (!value) {
    last.known = false;
    return std::nullopt;
  }
  std::optional<double> per_second;
  if (last.known && now_ns > last.at_ns && *value >= last.value)
    per_second =
        static_cast<double>(*value - last.value) * 1e9 / static_cast<double>(now_ns - last.at_ns);
  last = {true, *value, now_ns};
  return per_second;
}

void Sampler::add_rate(Gauge& gauge, Rate& last, std::optional<int64_t> value, int64_t now_ns,
                       double unit) const {
  if (const auto per_second = rate(last, value, now_ns)) {
    gauge.add(*per_second / unit);
  } else if (value && gauge.count == 0) {
    gauge.not_measured = kTooShort;
  }
}

std::map<int32_t, MemorySample> Sampler::sample_memory(const std::vector<Process>& ranks,
                                                       int64_t now_ns) const {
  std::map<int32_t, MemorySample> out;
  for (const Process& process : ranks) {
    if (!process_alive(process.pid, process.start_ticks, root_)) continue;
    const auto statm = read_statm(root_, process.pid);
    if (!statm) continue;
    MemorySample& sample = out[process.rank];
    sample.mono_ns = now_ns;
    sample.rss_bytes = statm->rss;
    sample.anon_bytes = statm->anon;
  }
  return out;
}

std::map<int32_t, MemorySample> Sampler::sample(const std::vector<Process>& ranks, int64_t now_ns,
                                                NodeHistory& node) {
  const std::vector<Member> members = find_members(ranks);
  ++calls_;
  if (!members.empty() && members.front().pid != group_pid_) {
    group_pid_ = members.front().pid;
    cpu_group_ = find_cgroup(root_, group_pid_, "cpu");
    const Cores cores = usable_cores(group_pid_);
    node.cores_usable = cores.usable;
    node.cores_limit_reason = cores.reason;
    const MemoryLimit limit = memory_limit(group_pid_);
    node.memory_limit_bytes = limit.bytes;
    const std::string before = killing_group_.levels.empty() ? "" : killing_group_.levels[0].folder;
    killing_group_ = find_cgroup(root_, group_pid_, "memory");
    if (killing_group_.levels.empty() || killing_group_.levels[0].folder != before)
      memory_kills_.reset();  // another count
    memory_group_ = tightest_memory_limit(killing_group_);
    if (memory_group_ && memory_group_->limit_bytes != limit.bytes) memory_group_.reset();
    throttled_.reset();
  }
  std::map<int32_t, MemorySample> out;
  std::map<int32_t, int64_t> ticks;
  for (const Member& member : members) {
    ticks[member.rank] += member.stat.cpu_ticks;
    if (!member.worker) read_rank(member, now_ns, out[member.rank]);
  }
  for (auto* rates : {&rank_cpu_, &rank_cpu_wait_, &rank_disk_wait_, &rank_minor_, &rank_major_})
    std::erase_if(*rates, [&](const auto& entry) { return !ticks.contains(entry.first); });
  for (const auto& [rank, total] : ticks) {
    const auto per_second = rate(rank_cpu_[rank], total, now_ns);
    if (per_second) out[rank].cpu_cores = *per_second / static_cast<double>(ticks_per_second());
  }
  read_pss(members, now_ns, out, node);
  read_node(now_ns, node, out);
  read_node_memory(node);
  read_throttling(node);
  read_disk(members, now_ns, node);
  read_net(now_ns, node);
  read_shared_memory(node);
  read_open_files(members, node);
  count_memory_kills(node);
  return out;
}

void Sampler::read_rank(const Member& member, int64_t now_ns, MemorySample& sample) {
  sample.mono_ns = now_ns;
  if (const auto statm = read_statm(root_, member.pid)) {
    sample.rss_bytes = statm->rss;
    sample.anon_bytes = statm->anon;
  }
  const auto per_second = [&](std::map<int32_t, Rate>& rates, std::optional<int64_t> value) {
    return rate(rates[member.rank], value, now_ns);
  };
  if (const auto waited_ns = per_second(rank_cpu_wait_, read_cpu_wait(root_, member.pid)))
    sample.cpu_wait_share = std::min(1.0, *waited_ns / 1e9);
  std::optional<int64_t> disk_ticks;
  if (counts_disk_wait(member.stat)) disk_ticks = member.stat.disk_wait_ticks;
  if (const auto waited = per_second(rank_disk_wait_, disk_ticks))
    sample.disk_wait_share = std::min(1.0, *waited / static_cast<double>(ticks_per_second()));
  sample.minor_faults_per_s = per_second(rank_minor_, member.stat.minor_faults);
  sample.major_faults_per_s = per_second(rank_major_, member.stat.major_faults);
}

// Kernels before 5.14 have no switch to read, and count unless they were booted otherwise: there a
// count says that they do.
bool Sampler::counts_disk_wait(const ProcStat& stat) {
  if (!disk_wait_counted_) {
    const auto text = read_file(root_ + "/proc/sys/kernel/task_delayacct", kStatBytes);
    disk_wait_counted_ = text && parse_int(*text).value_or(0) != 0;
  }
  if (stat.disk_wait_ticks > 0) disk_wait_counted_ = true;
  return *disk_wait_counted_;
}

void Sampler::read_node(int64_t now_ns, NodeHistory& node, std::map<int32_t, MemorySample>& ranks) {
  const auto text = read_file(root_ + "/proc/stat", 512);
  std::optional<int64_t> busy;
  if (text) {
    std::istringstream line(line_of(*text, "cpu").value_or(""));
    std::array<int64_t, 8> field{};  // user nice system idle iowait irq softirq steal
    int count = 0;
    while (count < 8 && line >> field[static_cast<size_t>(count)]) ++count;
    if (count >= 4) busy = field[0] + field[1] + field[2] + field[5] + field[6];
    const int64_t all = std::accumulate(field.begin(), field.end(), int64_t{0});
    if (count == 8 && steal_ticks_ >= 0 && all > all_ticks_ && field[7] >= steal_ticks_)
      for (auto& [rank, sample] : ranks)
        sample.cpu_steal_share =
            static_cast<double>(field[7] - steal_ticks_) / static_cast<double>(all - all_ticks_);
    steal_ticks_ = count == 8 ? field[7] : -1;
    all_ticks_ = all;
  }
  if (!busy && node.cpu_cores.count == 0)
    node.cpu_cores.not_measured = text ? root_ + "/proc/stat: no cpu line" : text.error().message;
  add_rate(node.cpu_cores, node_cpu_, busy, now_ns, static_cast<double>(ticks_per_second()));
}

void Sampler::read_node_memory(NodeHistory& node) const {
  if (memory_group_) {
    if (const auto used = memory_in_use(*memory_group_)) {
      node.memory_bytes.add(static_cast<double>(*used));
    } else if (node.memory_bytes.count == 0) {
      node.memory_bytes.not_measured = memory_group_->folder + "/memory.stat: not readable";
    }
    return;
  }
  const auto text = read_file(root_ + "/proc/meminfo");
  const auto total = text ? value_of(*text, "MemTotal") : std::nullopt;
  const auto available = text ? value_of(*text, "MemAvailable") : std::nullopt;
  if (total && available) {
    node.memory_bytes.add(static_cast<double>(*total - *available) * 1024);
  } else if (node.memory_bytes.count == 0) {
    node.memory_bytes.not_measured =
        text ? root_ + "/proc/meminfo: no MemTotal or MemAvailable" : text.error().message;
  }
}

void Sampler::read_throttling(NodeHistory& node) {
  Gauge& gauge = node.cpu_throttled_share;
  const auto now = throttling(cpu_group_);
  if (!now) {
    if (gauge.count == 0)
      gauge.not_measured =
          cpu_group_.version == 0 ? "no cpu cgroup is visible" : "no CPU quota is set";
    return;
  }
  if (throttled_ && now->periods > throttled_->periods && now->throttled >= throttled_->throttled)
    gauge.add(static_cast<double>(now->throttled - throttled_->throttled) /
              static_cast<double>(now->periods - throttled_->periods));
  else if (gauge.count == 0)
    gauge.not_measured = kTooShort;
  throttled_ = now;
}

void Sampler::read_disk(const std::vector<Member>& members, int64_t now_ns, NodeHistory& node) {
  // Like CPU time, the counts of a child that was waited for move into its parent's.
  int64_t read_bytes = 0, write_bytes = 0;
  std::string reason = members.empty() ? kNoProcess : "";
  for (const Member& member : members) {
    const auto text = read_file(pid_file(root_, member.pid, "io"), kStatBytes);
    const auto in = text ? value_of(*text, "read_bytes") : std::nullopt;
    const auto out = text ? value_of(*text, "write_bytes") : std::nullopt;
    if (in && out) {
      read_bytes += *in;
      write_bytes += *out;
    } else if (!member.worker || lives(root_, member.pid)) {
      reason = text ? pid_file(root_, member.pid, "io") + ": no read_bytes" : text.error().message;
    }
  }
  for (Gauge* gauge : {&node.disk_read_bps, &node.disk_write_bps})
    if (!reason.empty() && gauge->count == 0) gauge->not_measured = reason;
  const bool known = reason.empty();
  add_rate(node.disk_read_bps, disk_read_, known ? std::optional(read_bytes) : std::nullopt, now_ns,
           1);
  add_rate(node.disk_write_bps, disk_write_, known ? std::optional(write_bytes) : std::nullopt,
           now_ns, 1);
}

void Sampler::read_net(int64_t now_ns, NodeHistory& node) {
  const auto text = read_file(root_ + "/proc/net/dev");
  std::optional<int64_t> rx, tx;
  if (text) {
    rx = tx = 0;
    std::istringstream lines(*text);
    for (std::string line; std::getline(lines, line);) {
      const size_t colon = line.find(':');
      if (colon == std::string::npos) continue;
      std::string name = line.substr(0, colon);
      name.erase(0, name.find_first_not_of(' '));
      std::istringstream numbers(line.substr(colon + 1));
      std::array<int64_t, 9> field{};  // received: bytes and 7 more; sent: bytes
      for (int64_t& value : field) numbers >> value;
      if (!numbers || !counts_as_network(name)) continue;
      *rx += field[0];
      *tx += field[8];
    }
  } else if (node.net_rx_bps.count == 0) {
    node.net_rx_bps.not_measured = node.net_tx_bps.not_measured = text.error().message;
  }
  add_rate(node.net_rx_bps, net_rx_, rx, now_ns, 1);
  add_rate(node.net_tx_bps, net_tx_, tx, now_ns, 1);
}

}  // namespace stepscope::sampler
