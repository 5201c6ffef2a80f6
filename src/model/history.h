// What is kept of a run in memory: bounded at any length, and the same whether it grew live or was read from run.db.
//
// Per rank: raw steps (the newest kMaxRaw), and rollups of 10, 100, 1000, ... steady steps, each level bounded by
// kMaxRollups. Level n+1 is made from ten rollups of level n, so raw + rollups cover the whole run.
// Thread safety: none; one owner. Invariant: steps of a rank arrive in order.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/comparison.h"
#include "model/kept_list.h"
#include "model/loader_history.h"
#include "model/settings.h"
#include "model/step_sample.h"

namespace stepscope {

// A weighted block of consecutive steady steps: one step (count 1) or a rollup. What the engine reads.
struct StepBlock {
  int64_t first_step = 0;
  int64_t last_step = 0;
  int64_t begin_ns = 0;  // of the first step
  int64_t end_ns = 0;  // of the last one; what begins at or after it is in no block up to this one
  int64_t count = 0;
  // index kPhaseCount is the step total
  std::array<double, kPhaseCount + 1> mean_ns{};
  std::array<int64_t, kPhaseCount + 1> min_ns{}, median_ns{}, max_ns{};
  std::map<std::string, double> user_mean_ns;
  std::map<std::string, double>
      part_mean_ns;  // names of StepParts: loss, epoch_start, other_before_forward, ...
};

struct OccurrenceStats {
  struct Recent {
    int64_t step = -1;  // -1: not known, as begin_ns then
    int64_t begin_ns = 0;
    int64_t duration_ns = 0;
  };
  int64_t count = 0;
  int64_t total_ns = 0;
  KeptList<Recent> recent;  // the newest kMaxOccurrences
};

struct MemorySample {  // taken once a second by the agent
  int64_t mono_ns = 0;
  int64_t step = -1;  // the rank's step at that moment; -1 before the first
  std::optional<int64_t> rss_bytes, anon_bytes, worker_pss_bytes, device_allocated_bytes;
  std::optional<double> cpu_cores;  // cores used by the process and its children
  // Share of the time since the sample before in which the main thread could have run, but had no core.
  std::optional<double> cpu_wait_share;
  std::optional<double> disk_wait_share;  // of that time the main thread waited for storage
  std::optional<double> cpu_steal_share;  // of the machine's cores: taken by the hypervisor
  // Page faults of the process: filled from memory, and those that had to be read from storage.
  std::optional<double> minor_faults_per_s, major_faults_per_s;
};

// What a rank's process does at this moment.
struct Doing {
  std::string phase;  // a phase's name or the user's
  int64_t step = 0;
  int64_t for_ns = 0;  // how long already
  bool alive = false;  // its process
};

struct RankHistory {
  static constexpr size_t kMaxRaw = 2000, kMaxRollups = 2000, kMaxOccurrences = 256,
                          kMaxMemory = 2000;

  int32_t rank = 0;
  int32_t local_rank = -1, world_size = 1, attempt = 0;
  std::string node;
  int32_t pid = 0;
  std::string executable, python_version, torch_version;
  uint32_t facts = 0;  // FactBits, model/facts.h

  int64_t steps = 0;         // finished well, warm-up included
  int64_t warmup_steps = 0;  // how many of these
  int64_t failed_steps = 0;  // not in steps
  int64_t profiled_steps = 0;
  int64_t incomplete_steps = 0;
  int64_t first_begin_ns = 0, last_end_ns = 0;  // span of the steps
  // Occurrences before the first step and after the last. Not stored: added up again from their rows.
  int64_t outside_ns = 0;
  int64_t warmup_total_ns = 0;
  int64_t steady_samples = 0;     // over steady steps with known samples
  int64_t steady_samples_ns = 0;  // their time
  int64_t steady_fetches = 0, steady_backwards = 0, steady_optimizer_steps = 0, skipped_steps = 0;
  int64_t records_written = 0, records_dropped = 0;
  int64_t cost_ns = 0, cost_calls = 0;  // of all our calls so far, scaled up from the sampled ones

  KeptList<StepSample> raw;
  std::vector<KeptList<StepBlock>> rollups;  // [0]: 10 steps, [1]: 100, ...
  std::array<OccurrenceStats, kOccurrenceKinds> occurrences;
  KeptList<MemorySample> memory;  // halved (every second dropped) when full: covers the whole run
  std::optional<Doing> doing;     // of a live run. Not stored

  // Steady steps at the end of raw that are in no rollup yet; -1 (also after a load): not counted yet. Not stored.
  int32_t unrolled_steps = -1;
  uint32_t phases_seen = 0;  // a bit a phase that some step spent time in. Not stored

  // Marks warm-up, counts, rolls up, trims. Returns the rollups made, for the store. The step as it was kept, its
  // warm-up flag set, is raw.back() then.
  std::vector<std::pair<int, StepBlock>> add(StepSample step, const Settings& settings);
  void see_phases();  // counts phases_seen again: after a load
  bool is_within_steps(int64_t begin_ns, int64_t end_ns) const;
  void add(const Occurrence& occurrence);
  void add(const MemorySample& sample);
  // Keeps less than the constants above allow: many ranks in one memory (the hub's).
  void keep(size_t max_raw, size_t max_rollups, size_t max_memory);
  // The same for one of `ranks`: what all of them keep together is bounded, for thousands to about a gigabyte.
  void keep_share(size_t ranks);
  // Steady steps of the whole run, oldest first: coarse blocks where raw was trimmed, single steps where not, or, for
  // a tenth of the work, blocks of ten there too.
  enum class Finest { kStep, kTenSteps };
  std::vector<StepBlock> steady_blocks(Finest finest = Finest::kStep) const;
  // The same without a copy: use(const StepBlock&) for the blocks, then use(const StepSample&) for the steps.
  template <typename Use>
  void each_steady(Finest finest, Use use) const;
};

// From the coarsest level down: a block is taken only where its first child was trimmed a level below, and what it
// covers is skipped there. So every steady step of the run is in exactly one block.
template <typename Use>
void RankHistory::each_steady(Finest finest, Use use) const {
  int64_t covered_ns = INT64_MIN;
  const StepSample* first_raw = raw.begin();
  while (first_raw != raw.end() && !first_raw->steady()) ++first_raw;
  for (size_t level = rollups.size(); level-- > 0;) {
    int64_t finer_from_ns = INT64_MAX;
    if (level > 0 && !rollups[level - 1].empty())
      finer_from_ns = rollups[level - 1].front().begin_ns;
    if (level == 0 && first_raw != raw.end() && finest == Finest::kStep)
      finer_from_ns = first_raw->begin_ns;
    for (const StepBlock& block : rollups[level]) {
      if (block.begin_ns < covered_ns) continue;
      if (block.begin_ns >= finer_from_ns) break;
      covered_ns = block.end_ns;
      use(block);
    }
  }
  for (const StepSample* it = first_raw; it != raw.end(); ++it)
    if (it->steady() && it->begin_ns >= covered_ns) use(*it);
}

// Host readings over the run: average and peak, no list.
struct Gauge {
  double sum = 0, peak = 0;
  int64_t count = 0;
  std::string not_measured;  // why, when count is 0
  void add(double v) {
    sum += v;
    peak = count == 0 || v > peak ? v : peak;
    ++count;
  }
  std::optional<double> average() const {
    return count == 0 ? std::nullopt : std::optional(sum / static_cast<double>(count));
  }
};

struct NodeHistory {
  std::string node;
  double cores_usable = 0;         // min of affinity, cpuset, quota, ancestors; 0 unknown
  std::string cores_limit_reason;  // "affinity", "cgroup quota 1.5 of /a/b", ...
  std::optional<int64_t>
      memory_limit_bytes;  // tightest of cgroup and ancestors, else the machine's
  Gauge cpu_cores, cpu_throttled_share, memory_bytes,
      job_memory_bytes;  // job: PSS/RSS of ranks and workers
  Gauge disk_read_bps, disk_write_bps, net_rx_bps, net_tx_bps;
  // What may end the run: /dev/shm, open files of the process nearest to its limit (share of it),
  // and how many processes of the run's group the kernel has ended for lack of memory.
  Gauge shm_used_bytes, shm_size_bytes, open_files_share, memory_kills;
};

struct RunHistory {
  static constexpr size_t kMaxLoaders = 16;

  // identity
  std::string name, id, folder;
  std::vector<std::string> command;
  int64_t started_wall_ns = 0;
  int64_t duration_ns = 0;
  std::optional<int> exit_code;  // absent while running, or lost with a killed supervisor
  bool live = false;
  Settings settings;
  std::vector<RankHistory> ranks;  // by rank
  std::vector<NodeHistory> nodes;
  std::vector<LoaderHistory> loaders;   // by rank and number; at most kMaxLoaders a rank
  Comparison comparison;                // of the ranks, up to the newest step that was judged
  std::vector<std::string> unobserved;  // sentences: which interpreter was not observed, and why
  std::vector<std::string>
      notices;  // what else the card must say (drops, no room, restarted agent, ...)
};

}  // namespace stepscope
