// Every table row, described once: a description calls visit(column, value) for each column, in
// order. CREATE TABLE, INSERT and reading are visitors over the same description, so that none of
// them can differ from the others.
//
// A series is a list that grows at one end and is trimmed at the other: the raw steps of a rank,
// its rollups of one level, its occurrences of one kind. Its rows lie together in the table: id =
// series_base(rank, sub) + number. Thread safety: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/finding.h"
#include "model/history.h"
#include "store/database.h"
#include "store/store.h"
#include "store/sync_blob.h"

namespace stepscope::store {

inline constexpr int kMaxLevels = 16;  // rollups of 10^16 steps: no run has them
inline constexpr int64_t series_base(int32_t rank, int sub) {
  return (int64_t{rank} * 32 + sub) * (int64_t{1} << 32);
}

// Visitors for INSERT and SELECT; CREATE TABLE's is in schema.cpp.
struct Binder {
  Statement& statement;
  void operator()(std::string_view, const std::vector<SyncPoint>& syncs) {
    const std::string bytes = to_blob(syncs);
    statement.bind_copy(Bytes{bytes});
  }
  template <typename T>
  void operator()(std::string_view, const T& value) {
    statement.bind(value);
  }
};
struct Extractor {
  Statement& statement;
  void operator()(std::string_view, std::vector<SyncPoint>& syncs) {
    std::string bytes;
    statement.get_bytes(bytes);
    syncs = from_blob(bytes);
  }
  template <typename T>
  void operator()(std::string_view, T& value) {
    statement.get(value);
  }
};
struct Names {
  std::string list, marks;  // "a, b" and "?, ?"
  template <typename T>
  void operator()(std::string_view column, const T&) {
    list += (list.empty() ? "" : ", ") + std::string(column);
    marks += marks.empty() ? "?" : ", ?";
  }
};
template <typename Describe>
Names names_of(Describe describe) {
  Names names;
  describe(names);
  return names;
}

struct Key {  // of a row of a series
  int64_t id = 0;
  int32_t rank = 0;
  int32_t sub = 0;  // rollups: level
};

using Columns = std::array<std::string, kPhaseCount + 1>;
// "input_ns", "h2d_ns", ..., and for rollups also "step_time_ns" last; `infix` is "", "mean_", ...
inline Columns phase_columns(std::string_view infix) {
  Columns columns;
  for (size_t i = 0; i <= kPhaseCount; ++i)
    columns[i] = std::string(i < kPhaseCount ? kPhaseNames[i] : "step_time") + "_" +
                 std::string(infix) + "ns";
  return columns;
}

inline constexpr std::array<std::string_view, 7> kPartNames = {"loss",
                                                               "epoch_start",
                                                               "other_before_forward",
                                                               "other_after_backward",
                                                               "other_after_optimizer",
                                                               "other_between_steps",
                                                               "recompute"};

template <typename Visit, typename K, typename Sample>
void step_columns(Visit&& visit, K& key, Sample& s) {
  static const Columns names = phase_columns("");
  visit("id", key.id);
  visit("rank", s.rank);
  visit("step", s.step);
  visit("begin_ns", s.begin_ns);
  visit("end_ns", s.end_ns);
  for (size_t i = 0; i < kPhaseCount; ++i) visit(names[i], s.phase_ns[i]);
  visit("loss_ns", s.parts.loss_ns);
  visit("epoch_start_ns", s.parts.epoch_start_ns);
  visit("other_before_forward_ns", s.parts.other_before_forward_ns);
  visit("other_after_backward_ns", s.parts.other_after_backward_ns);
  visit("other_after_optimizer_ns", s.parts.other_after_optimizer_ns);
  visit("other_between_steps_ns", s.parts.other_between_steps_ns);
  visit("recompute_ns", s.parts.recompute_ns);
  visit("failed", s.failed);
  visit("profiled", s.profiled);
  visit("compiled", s.compiled);
  visit("paused", s.paused);
  visit("incomplete", s.incomplete);
  visit("warmup", s.warmup);
  visit("samples", s.samples);
  visit("fetches", s.fetches);
  visit("backwards", s.backwards);
  visit("optimizer_steps", s.optimizer_steps);
  visit("skipped_steps", s.skipped_steps);
  visit("syncs", s.syncs);  // see sync_blob.h
}

// parts: those of kPartNames, absent where the block has none
template <typename Visit, typename K, typename Block, typename Parts>
void rollup_columns(Visit&& visit, K& key, Block& b, Parts& parts) {
  static const Columns mean = phase_columns("mean_"), min = phase_columns("min_"),
                       median = phase_columns("median_"), max = phase_columns("max_");
  static const auto part_names = [] {
    std::array<std::string, kPartNames.size()> names;
    for (size_t i = 0; i < names.size(); ++i) names[i] = std::string(kPartNames[i]) + "_mean_ns";
    return names;
  }();
  visit("id", key.id);
  visit("rank", key.rank);
  visit("level", key.sub);
  visit("first_step", b.first_step);
  visit("last_step", b.last_step);
  visit("begin_ns", b.begin_ns);
  visit("end_ns", b.end_ns);
  visit("step_count", b.count);
  for (size_t i = 0; i <= kPhaseCount; ++i) visit(mean[i], b.mean_ns[i]);
  for (size_t i = 0; i <= kPhaseCount; ++i) visit(min[i], b.min_ns[i]);
  for (size_t i = 0; i <= kPhaseCount; ++i) visit(median[i], b.median_ns[i]);
  for (size_t i = 0; i <= kPhaseCount; ++i) visit(max[i], b.max_ns[i]);
  for (size_t i = 0; i < parts.size(); ++i) visit(part_names[i], parts[i]);
}

struct OccurrenceRow {  // step and begin are absent where an earlier version did not keep them
  std::optional<int64_t> step, begin_ns;
  int64_t duration_ns = 0;
};
inline constexpr std::array<std::string_view, kOccurrenceKinds> kOccurrenceNames = {
    "epoch_start", "checkpoint", "validation", "compile", "profiler"};
template <typename Visit, typename K, typename Kind, typename Row>
void occurrence_columns(Visit&& visit, K& key, Kind& kind, Row& row) {
  visit("id", key.id);
  visit("rank", key.rank);
  visit("kind", kind);
  visit("step", row.step);
  visit("begin_ns", row.begin_ns);
  visit("duration_ns", row.duration_ns);
}

template <typename Visit, typename K, typename Sample>
void memory_columns(Visit&& visit, K& key, Sample& m) {
  visit("id", key.id);
  visit("rank", key.rank);
  visit("mono_ns", m.mono_ns);
  visit("step", m.step);
  visit("rss_bytes", m.rss_bytes);
  visit("anon_bytes", m.anon_bytes);
  visit("worker_pss_bytes", m.worker_pss_bytes);
  visit("device_allocated_bytes", m.device_allocated_bytes);
  visit("cpu_cores", m.cpu_cores);
  visit("cpu_wait_share", m.cpu_wait_share);
  visit("disk_wait_share", m.disk_wait_share);
  visit("cpu_steal_share", m.cpu_steal_share);
  visit("minor_faults_per_s", m.minor_faults_per_s);
  visit("major_faults_per_s", m.major_faults_per_s);
}

template <typename Visit, typename Rank>
void rank_columns(Visit&& visit, Rank& r) {
  visit("rank", r.rank);
  visit("local_rank", r.local_rank);
  visit("world_size", r.world_size);
  visit("attempt", r.attempt);
  visit("node", r.node);
  visit("pid", r.pid);
  visit("executable", r.executable);
  visit("python_version", r.python_version);
  visit("torch_version", r.torch_version);
  visit("facts", r.facts);
  visit("steps", r.steps);
  visit("warmup_steps", r.warmup_steps);
  visit("failed_steps", r.failed_steps);
  visit("profiled_steps", r.profiled_steps);
  visit("incomplete_steps", r.incomplete_steps);
  visit("first_begin_ns", r.first_begin_ns);
  visit("last_end_ns", r.last_end_ns);
  visit("warmup_total_ns", r.warmup_total_ns);
  visit("steady_samples", r.steady_samples);
  visit("steady_samples_ns", r.steady_samples_ns);
  visit("steady_fetches", r.steady_fetches);
  visit("steady_backwards", r.steady_backwards);
  visit("steady_optimizer_steps", r.steady_optimizer_steps);
  visit("skipped_steps", r.skipped_steps);
  visit("records_written", r.records_written);
  visit("records_dropped", r.records_dropped);
  visit("cost_ns", r.cost_ns);
  visit("cost_calls", r.cost_calls);
}

template <typename Visit, typename Run>
void run_columns(Visit&& visit, Run& r) {
  visit("run_id", r.id);
  visit("name", r.name);
  visit("started_wall_ns", r.started_wall_ns);
  visit("duration_ns", r.duration_ns);
  visit("exit_code", r.exit_code);
}

template <typename Visit, typename Node>
void node_columns(Visit&& visit, Node& n) {
  visit("node", n.node);
  visit("cores_usable", n.cores_usable);
  visit("cores_limit_reason", n.cores_limit_reason);
  visit("memory_limit_bytes", n.memory_limit_bytes);
}

template <typename Visit, typename G>
void gauge_columns(Visit&& visit, G& g) {
  visit("sum", g.sum);
  visit("peak", g.peak);
  visit("reading_count", g.count);
  visit("not_measured", g.not_measured);
}

// The gauges of a node, by name.
template <typename Visit, typename Node>
void node_gauges(Visit&& visit, Node& n) {
  visit("cpu_cores", n.cpu_cores);
  visit("cpu_throttled_share", n.cpu_throttled_share);
  visit("memory_bytes", n.memory_bytes);
  visit("job_memory_bytes", n.job_memory_bytes);
  visit("disk_read_bps", n.disk_read_bps);
  visit("disk_write_bps", n.disk_write_bps);
  visit("net_rx_bps", n.net_rx_bps);
  visit("net_tx_bps", n.net_tx_bps);
  visit("shm_used_bytes", n.shm_used_bytes);
  visit("shm_size_bytes", n.shm_size_bytes);
  visit("open_files_share", n.open_files_share);
  visit("memory_kills", n.memory_kills);
}

}  // namespace stepscope::store
