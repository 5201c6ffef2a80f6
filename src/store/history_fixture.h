// For tests: histories with every field set from a seed, and the text of every field of a history.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <set>
#include <sstream>
#include <string>

#include "model/history.h"

namespace stepscope::store::fixture {

// A field that was added must also be described in rows.h and printed below: then mend the size
// here.
static_assert(sizeof(StepSample) == 272 && sizeof(StepBlock) == 552 && sizeof(MemorySample) == 176);
static_assert(sizeof(OccurrenceStats) == 48 && sizeof(Gauge) == 56 && sizeof(NodeHistory) == 760);
static_assert(sizeof(RankHistory) == 712 &&
              sizeof(RunHistory) - sizeof(Settings) - sizeof(Comparison) == 272);

struct TemporaryFolder {
  std::string path;
  TemporaryFolder()
      : path((std::filesystem::temp_directory_path() / "stepscope-store-XXXXXX").string()) {
    if (mkdtemp(path.data()) == nullptr) path.clear();
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  int64_t number(int64_t high) { return std::uniform_int_distribution<int64_t>(0, high)(engine_); }
  double real() { return std::uniform_real_distribution<double>(0, 1e9)(engine_); }
  bool coin() { return number(1) == 1; }

  StepSample step(int32_t rank, int64_t step, int64_t begin_ns) {
    StepSample s;
    s.rank = rank;
    s.step = step;
    s.begin_ns = begin_ns;
    for (int64_t& ns : s.phase_ns) ns = coin() ? number(10'000'000) : 0;
    int64_t total = 0;
    for (const int64_t ns : s.phase_ns) total += ns;
    if (coin())
      s.user_phase_ns = {{"augment 'x'", number(1000)},
                         {"r\xC3\xA9"
                          "duction",
                          number(1000)}};
    s.parts = {number(9), number(9), number(9), number(9), number(9), number(9), number(9)};
    s.end_ns = begin_ns + total;
    s.failed = coin();
    s.profiled = coin();
    s.compiled = coin();
    s.paused = coin();
    s.incomplete = coin();
    s.warmup = coin();
    if (coin()) s.samples = number(512);
    s.fetches = static_cast<int32_t>(number(4));
    s.backwards = static_cast<int32_t>(number(4));
    s.optimizer_steps = static_cast<int32_t>(number(4));
    s.skipped_steps = static_cast<int32_t>(number(4));
    for (int64_t i = number(3); i > 0; --i)
      s.syncs.push_back(
          {static_cast<uint64_t>(number(1LL << 62)), static_cast<uint32_t>(number(UINT32_MAX)),
           static_cast<uint32_t>(number(1 << 20)), number(1LL << 60), number(1LL << 60), coin()});
    return s;
  }

  StepBlock block(int64_t first, int64_t count) {
    StepBlock b;
    b.first_step = first;
    b.last_step = first + count - 1;
    b.begin_ns = first * 1'000'000;
    b.end_ns = b.begin_ns + number(1'000'000'000);
    b.count = count;
    for (size_t i = 0; i <= kPhaseCount; ++i) {
      b.mean_ns[i] = real();
      b.min_ns[i] = number(1'000'000'000'000);
      b.median_ns[i] = number(1'000'000'000'000);
      b.max_ns[i] = number(1'000'000'000'000);
    }
    if (coin()) b.user_mean_ns = {{"augment", real()}, {"", real()}};
    if (coin())
      b.part_mean_ns = {{"loss", real()}, {"other_between_steps", real()}, {"recompute", real()}};
    return b;
  }

  MemorySample memory(int64_t mono_ns) {
    MemorySample m;
    m.mono_ns = mono_ns;
    m.step = number(1000) - 1;
    if (coin()) m.rss_bytes = number(1LL << 50);
    if (coin()) m.anon_bytes = number(1LL << 50);
    if (coin()) m.worker_pss_bytes = number(1LL << 50);
    if (coin()) m.device_allocated_bytes = number(1LL << 50);
    if (coin()) m.cpu_cores = real();
    if (coin()) m.cpu_wait_share = real();
    if (coin()) m.disk_wait_share = real();
    if (coin()) m.cpu_steal_share = real();
    if (coin()) m.minor_faults_per_s = real();
    if (coin()) m.major_faults_per_s = real();
    return m;
  }

  Gauge gauge() {
    Gauge g;
    if (coin()) {
      g.not_measured = "/proc/stat: permission denied";
    } else {
      g.add(real());
      g.add(real());
    }
    return g;
  }

  RankHistory rank(int32_t number_, int64_t steps) {
    RankHistory r;
    r.rank = number_;
    r.local_rank = static_cast<int32_t>(number(8)) - 1;
    r.world_size = static_cast<int32_t>(number(8)) + 1;
    r.attempt = static_cast<int32_t>(number(3));
    r.node = "node-" + std::to_string(number(3));
    r.pid = static_cast<int32_t>(number(1 << 22));
    r.executable = "/usr/bin/python3";
    r.python_version = "3.11.2";
    r.torch_version = "2.13.0";
    r.facts = static_cast<uint32_t>(number(0xffffffff));
    for (int64_t* count :
         {&r.steps, &r.warmup_steps, &r.failed_steps, &r.profiled_steps, &r.incomplete_steps,
          &r.first_begin_ns, &r.last_end_ns, &r.warmup_total_ns, &r.steady_samples,
          &r.steady_samples_ns, &r.steady_fetches, &r.steady_backwards, &r.steady_optimizer_steps,
          &r.skipped_steps, &r.records_written, &r.records_dropped, &r.cost_ns, &r.cost_calls})
      *count = number(1LL << 50);
    for (int64_t i = 0; i < steps; ++i) r.raw.push_back(step(number_, i, i * 100'000'000));
    r.rollups.resize(steps >= 100 ? 2 : steps >= 10 ? 1 : 0);
    for (int64_t i = 0; i < steps / 10; ++i) r.rollups[0].push_back(block(i * 10, 10));
    for (int64_t i = 0; i < steps / 100; ++i) r.rollups[1].push_back(block(i * 100, 100));
    for (int64_t i = 0; i < steps / 7; ++i) r.memory.push_back(memory(i * 1'000'000'000));
    return r;
  }

  RunHistory run(int ranks, int64_t steps) {
    RunHistory run;
    run.name = "train-20260101-120000";
    run.id = "id 'quoted' \xE2\x82\xAC";
    run.command = {"python", "train.py", "--text", "two words", "", "bytes \xff\xfe"};
    run.started_wall_ns = 1'767'225'600'000'000'000 + number(1000);
    run.duration_ns = number(1LL << 50);
    if (coin()) run.exit_code = static_cast<int>(number(255));
    run.live = true;
    run.settings.input_warning = 0.1 + 1e-17 + real() * 1e-12;
    run.settings.warmup_steps = number(100);
    for (int r = 0; r < ranks; ++r) run.ranks.push_back(rank(r, steps));
    NodeHistory n;
    n.node = "host";
    n.cores_usable = 1.5;
    n.cores_limit_reason = "cgroup quota 1.5 of /a/b";
    if (coin()) n.memory_limit_bytes = number(1LL << 40);
    for (Gauge* g : {&n.cpu_cores, &n.cpu_throttled_share, &n.memory_bytes, &n.job_memory_bytes,
                     &n.disk_read_bps, &n.disk_write_bps, &n.net_rx_bps, &n.net_tx_bps,
                     &n.shm_used_bytes, &n.shm_size_bytes, &n.open_files_share, &n.memory_kills})
      *g = gauge();
    run.nodes = {n, n};
    run.nodes[1].node = "other";
    LoaderHistory& loader = run.loaders.emplace_back();
    loader.loader = 1;
    loader.dataset = "data 'x'";
    loader.transform_ns["Resize"] = number(1000);
    loader.worker(1).batches = number(1000);
    run.comparison.last_step = number(1000);
    run.comparison.time_ns = real();
    run.comparison.episodes.emplace_back().node = "node 'x'";
    run.notices = {"1,024 records were dropped", "second"};
    run.unobserved = {"/usr/bin/python2 (pid 7): no torch"};
    return run;
  }

 private:
  std::mt19937_64 engine_;
};

class Dump {
 public:
  explicit Dump(const RunHistory& run) {
    out_.precision(17);
    line("run", run.name, run.id, run.folder, run.started_wall_ns, run.duration_ns,
         run.exit_code.value_or(-1), run.live);
    for (const auto& text : run.command) line("argument", text);
    for (const auto& [key, value] : run.settings.effective()) line("setting", key, value);
    for (const auto& text : run.notices) line("notice", text);
    for (const auto& text : run.unobserved) line("unobserved", text);
    line("comparison", to_text(run.comparison));
    for (const LoaderHistory& loader : run.loaders) line("loader", to_text(loader));
    for (const NodeHistory& n : run.nodes) node(n);
    for (const RankHistory& r : run.ranks) rank(r);
  }
  std::string text() const { return out_.str(); }

 private:
  template <typename... Values>
  void line(const Values&... values) {
    ((out_ << values << '|'), ...);
    out_ << '\n';
  }
  void gauge(const char* name, const Gauge& g) {
    line(name, g.sum, g.peak, g.count, g.not_measured);
  }
  void node(const NodeHistory& n) {
    line("node", n.node, n.cores_usable, n.cores_limit_reason, n.memory_limit_bytes.value_or(-1));
    gauge("cpu_cores", n.cpu_cores);
    gauge("cpu_throttled_share", n.cpu_throttled_share);
    gauge("memory_bytes", n.memory_bytes);
    gauge("job_memory_bytes", n.job_memory_bytes);
    gauge("disk_read_bps", n.disk_read_bps);
    gauge("disk_write_bps", n.disk_write_bps);
    gauge("net_rx_bps", n.net_rx_bps);
    gauge("net_tx_bps", n.net_tx_bps);
    gauge("shm_used_bytes", n.shm_used_bytes);
    gauge("shm_size_bytes", n.shm_size_bytes);
    gauge("open_files_share", n.open_files_share);
    gauge("memory_kills", n.memory_kills);
  }
  void rank(const RankHistory& r) {
    line("rank", r.rank, r.local_rank, r.world_size, r.attempt, r.node, r.pid, r.executable,
         r.python_version, r.torch_version, r.facts, r.steps, r.warmup_steps, r.failed_steps,
         r.profiled_steps, r.incomplete_steps, r.first_begin_ns, r.last_end_ns, r.warmup_total_ns,
         r.steady_samples, r.steady_samples_ns, r.steady_fetches, r.steady_backwards,
         r.steady_optimizer_steps, r.skipped_steps, r.records_written, r.records_dropped, r.cost_ns,
         r.cost_calls);
    for (const StepSample& s : r.raw) {
      line("step", s.rank, s.step, s.begin_ns, s.end_ns, s.failed, s.profiled, s.compiled, s.paused,
           s.incomplete, s.warmup, s.samples.value_or(-1), s.fetches, s.backwards,
           s.optimizer_steps, s.skipped_steps);
      for (const int64_t ns : s.phase_ns) line(ns);
      for (const auto& [name, ns] : s.user_phase_ns) line(name, ns);
      line(s.parts.loss_ns, s.parts.epoch_start_ns, s.parts.other_before_forward_ns,
           s.parts.other_after_backward_ns, s.parts.other_after_optimizer_ns,
           s.parts.other_between_steps_ns, s.parts.recompute_ns);
      for (const SyncPoint& sync : s.syncs)
        line("sync", sync.group, sync.index, sync.members, sync.ready_ns, sync.leave_ns,
             sync.together);
    }
    for (const auto& level : r.rollups) {
      line("level");
      for (const StepBlock& b : level) {
        line("block", b.first_step, b.last_step, b.begin_ns, b.end_ns, b.count);
        for (size_t i = 0; i <= kPhaseCount; ++i)
          line(b.mean_ns[i], b.min_ns[i], b.median_ns[i], b.max_ns[i]);
        for (const auto& [name, ns] : b.user_mean_ns) line(name, ns);
        for (const auto& [name, ns] : b.part_mean_ns) line(name, ns);
      }
    }
    for (const OccurrenceStats& o : r.occurrences) {
      line("occurrences", o.count, o.total_ns);
      for (const auto& recent : o.recent) line(recent.step, recent.begin_ns, recent.duration_ns);
    }
    for (const MemorySample& m : r.memory)
      line("memory", m.mono_ns, m.step, m.rss_bytes.value_or(-1), m.anon_bytes.value_or(-1),
           m.worker_pss_bytes.value_or(-1), m.device_allocated_bytes.value_or(-1),
           m.cpu_cores.value_or(-1), m.cpu_wait_share.value_or(-1), m.disk_wait_share.value_or(-1),
           m.cpu_steal_share.value_or(-1), m.minor_faults_per_s.value_or(-1),
           m.major_faults_per_s.value_or(-1));
  }
  std::ostringstream out_;
};
inline std::string dump(const RunHistory& run) { return Dump(run).text(); }

// The first line that differs, with its number; empty when none does.
inline std::string difference(const RunHistory& expected, const RunHistory& actual) {
  std::istringstream left(dump(expected)), right(dump(actual));
  std::string a, b;
  for (int line = 1;; ++line) {
    const bool more_a = static_cast<bool>(std::getline(left, a)),
               more_b = static_cast<bool>(std::getline(right, b));
    if (!more_a && !more_b) return "";
    if (more_a != more_b || a != b)
      return "line " + std::to_string(line) + ": expected " + (more_a ? a : "the end") + ", got " +
             (more_b ? b : "the end");
  }
}

inline void expect_same(const RunHistory& expected, const Result<RunHistory>& actual) {
  ASSERT_TRUE(actual) << actual.error().message;
  EXPECT_EQ(difference(expected, *actual), "");
}

inline std::set<std::string> files_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.insert(entry.path().filename());
  return names;
}

}  // namespace stepscope::store::fixture
