// Host readings of a node and of the run's processes, from /proc and the cgroup tree below a root
// that tests replace.
//
// Thread safety: one owner. No lock, no thread. Every reading that fails is absent with a reason
// ("/proc/stat: Permission denied"), never 0. What each reading means:
//   rss, anon          statm of the rank; anon is without files and shared memory: page cache is
//                      not memory that the process holds
//   worker_pss         proportional share of the rank's descendants, without file pages. Pages that
//                      a fork still shares are counted once. smaps_rollup is slow on large
//                      processes, so its time is drawn on a credit: kPssCreditNs at the start,
//                      which early growth needs, and 1/kPssShare of the time after that; rounds are
//                      kPssIntervalNs apart or more. Absent between rounds
//   job_memory         of all ranks and workers: PSS in every fourth round; a rank without workers
//                      shares nothing that counts, its anonymous memory will do
//   cpu_cores          of the rank and its descendants, those that ended included
//   cpu_wait_share     schedstat of the rank's main thread: the kernel may be built without it
//   disk_wait_share    of the rank's main thread; absent where the kernel does not count it, which is
//                      usual: sysctl kernel.task_delayacct=1
//   faults             of the rank's process, without its workers
//   cpu_steal_share    of the machine's cores, by the hypervisor; the same for its ranks
//   node.memory_bytes  of what node.memory_limit_bytes is the limit of: the machine without what is
//                      available, or the limiting cgroup without its page cache
//   node.cpu_cores     cores in use on the machine, by whomever
//   disk               what the run's processes read from and wrote to storage; what came from the
//                      page cache is not in it
//   shm                of /dev/shm, by whomever
//   open_files_share   of what a process may open, of the run's process that is nearest to it; in
//                      every eighth call
//   memory_kills       processes of the ranks' own cgroup (without one: of the machine) that the
//                      kernel ended for lack of memory, since the first call
//   net                of the interfaces of the machine (container) without loopback and bridges
// A rate needs two calls. Invariant: one pass over /proc a call; known strangers are not read again
// for 10 calls.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/history.h"
#include "sampler/cgroup.h"
#include "sampler/proc.h"

namespace stepscope::sampler {

struct Process {
  int32_t pid;
  int64_t start_ticks;
  int32_t rank;
};

// Field 22 of /proc/<pid>/stat; absent when the process is gone.
std::optional<int64_t> process_start(int32_t pid, const std::string& root = "");
// A zombie is dead. start_ticks <= 0: not known, the pid alone decides. Without a readable /proc,
// kill(pid, 0) does.
bool process_alive(int32_t pid, int64_t start_ticks, const std::string& root = "");

class Sampler {
 public:
  static constexpr int64_t kPssIntervalNs = 1'000'000'000;
  static constexpr int64_t kPssBudgetNs = 50'000'000;  // no process is begun beyond it in one call
  static constexpr int64_t kPssCreditNs = 500'000'000;
  static constexpr int64_t kPssShare = 100;

  // "" reads /proc and /sys, else <root>/proc and <root>/sys.
  explicit Sampler(std::string root = "", int64_t pss_budget_ns = kPssBudgetNs);

  // Adds one reading to the node's gauges and returns one MemorySample per living rank process (its
  // workers included: descendants are found through ppid). The first call with a rank also fills
  // the node's limits (cores, memory).
  // `now_ns`: CLOCK_MONOTONIC, given by the caller.
  std::map<int32_t, MemorySample> sample(const std::vector<Process>& ranks, int64_t now_ns,
                                         NodeHistory& node);

  // Also once more when all have ended: it may be why.
  void count_memory_kills(NodeHistory& node);

  // Memory of the ranks alone (statm), cheap: for the first seconds of a run, when a sample a second
  // would say too little about growth from step to step.
  std::map<int32_t, MemorySample> sample_memory(const std::vector<Process>& ranks,
                                                int64_t now_ns) const;

  // min of affinity, cpuset, quota, own cgroup and its ancestors, v1 and v2. pid: whose cgroup.
  // 0: not known.
  struct Cores {
    double usable;
    std::string reason;
  };
  Cores usable_cores(int32_t pid) const;
  struct MemoryLimit {
    std::optional<int64_t> bytes;
    std::string reason;
  };
  MemoryLimit memory_limit(int32_t pid) const;

 private:
  struct Member {
    int32_t pid;
    int32_t rank;
    bool worker;
    ProcStat stat;
  };
  struct Rate {
    bool known = false;
    int64_t value = 0, at_ns = 0;
  };
  struct PssRound {
    std::vector<Member> todo;                 // read from the back
    std::map<int32_t, int64_t> worker_bytes;  // by rank
    int64_t job_bytes = 0;
    bool running = false, with_ranks = false, failed = false;
    std::string reason;
  };

  std::vector<Member> find_members(const std::vector<Process>& ranks);
  std::optional<double> rate(Rate& last, std::optional<int64_t> value, int64_t now_ns) const;
  void add_rate(Gauge& gauge, Rate& last, std::optional<int64_t> value, int64_t now_ns,
                double unit) const;
  bool begin_pss(const std::vector<Member>& members, int64_t now_ns);
  void read_pss(const std::vector<Member>& members, int64_t now_ns,
                std::map<int32_t, MemorySample>& out, NodeHistory& node);
  bool spend_on_pss();
  void read_rank(const Member& member, int64_t now_ns, MemorySample& sample);
  bool counts_disk_wait(const ProcStat& stat);
  void read_node(int64_t now_ns, NodeHistory& node, std::map<int32_t, MemorySample>& ranks);
  void read_node_memory(NodeHistory& node) const;
  void read_throttling(NodeHistory& node);
  void read_disk(const std::vector<Member>& members, int64_t now_ns, NodeHistory& node);
  void read_net(int64_t now_ns, NodeHistory& node);
  void read_shared_memory(NodeHistory& node) const;
  void read_open_files(const std::vector<Member>& members, NodeHistory& node) const;

  std::string root_;
  int64_t pss_budget_ns_;
  std::unordered_map<int32_t, int32_t> parents_;  // pid -> ppid, as of the last full pass
  int calls_ = 0;
  int32_t group_pid_ = 0;  // whose cgroup is watched
  Cgroup cpu_group_;
  Cgroup killing_group_;
  std::optional<int64_t> memory_kills_;       // counted before the run
  std::optional<CgroupMemory> memory_group_;  // absent: the machine's memory is the limit
  std::optional<Throttling> throttled_;
  std::map<int32_t, Rate> rank_cpu_, rank_cpu_wait_, rank_disk_wait_, rank_minor_, rank_major_;
  std::optional<bool> disk_wait_counted_;
  int64_t steal_ticks_ = -1, all_ticks_ = 0;  // of the machine, at the last call
  Rate node_cpu_, disk_read_, disk_write_, net_rx_, net_tx_;
  PssRound pss_;
  int rounds_ = 0;
  int64_t next_pss_ns_ = INT64_MIN;
  int64_t pss_credit_ns_ = kPssCreditNs, credited_ns_ = INT64_MIN;
};

}  // namespace stepscope::sampler
