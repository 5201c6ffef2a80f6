#include "hub/convert.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "hub/protocol.h"

namespace stepscope::hub {
namespace {

enum StepFlag : uint32_t {
  kFailed = 1,
  kProfiled = 2,
  kCompiled = 4,
  kPaused = 8,
  kIncomplete = 16,
};

std::array<int64_t StepParts::*, 7> part_fields() {
  return {&StepParts::loss_ns,
          &StepParts::epoch_start_ns,
          &StepParts::other_before_forward_ns,
          &StepParts::other_after_backward_ns,
          &StepParts::other_after_optimizer_ns,
          &StepParts::other_between_steps_ns,
          &StepParts::recompute_ns};
}

// In the order of hub.proto's NodeState::gauges.
template <typename Node, typename Use>
void each_gauge(Node& node, Use use) {
  for (auto* gauge :
       {&node.cpu_cores, &node.cpu_throttled_share, &node.memory_bytes, &node.job_memory_bytes,
        &node.disk_read_bps, &node.disk_write_bps, &node.net_rx_bps, &node.net_tx_bps,
        &node.shm_used_bytes, &node.shm_size_bytes, &node.open_files_share, &node.memory_kills})
    use(*gauge);
}

// Totals of both kinds have the same names: one list, for filling and for adding up.
template <typename Use>
void each_total(Use use) {
  use(&RankHistory::steps, &pb::Totals::steps, &pb::Totals::set_steps);
  use(&RankHistory::warmup_steps, &pb::Totals::warmup_steps, &pb::Totals::set_warmup_steps);
  use(&RankHistory::failed_steps, &pb::Totals::failed_steps, &pb::Totals::set_failed_steps);
  use(&RankHistory::profiled_steps, &pb::Totals::profiled_steps, &pb::Totals::set_profiled_steps);
  use(&RankHistory::incomplete_steps, &pb::Totals::incomplete_steps,
      &pb::Totals::set_incomplete_steps);
  use(&RankHistory::outside_ns, &pb::Totals::outside_ns, &pb::Totals::set_outside_ns);
  use(&RankHistory::warmup_total_ns, &pb::Totals::warmup_total_ns,
      &pb::Totals::set_warmup_total_ns);
  use(&RankHistory::steady_samples, &pb::Totals::steady_samples, &pb::Totals::set_steady_samples);
  use(&RankHistory::steady_samples_ns, &pb::Totals::steady_samples_ns,
      &pb::Totals::set_steady_samples_ns);
  use(&RankHistory::steady_fetches, &pb::Totals::steady_fetches, &pb::Totals::set_steady_fetches);
  use(&RankHistory::steady_backwards, &pb::Totals::steady_backwards,
      &pb::Totals::set_steady_backwards);
  use(&RankHistory::steady_optimizer_steps, &pb::Totals::steady_optimizer_steps,
      &pb::Totals::set_steady_optimizer_steps);
  use(&RankHistory::skipped_steps, &pb::Totals::skipped_steps, &pb::Totals::set_skipped_steps);
  use(&RankHistory::records_written, &pb::Totals::records_written,
      &pb::Totals::set_records_written);
  use(&RankHistory::records_dropped, &pb::Totals::records_dropped,
      &pb::Totals::set_records_dropped);
  use(&RankHistory::cost_ns, &pb::Totals::cost_ns, &pb::Totals::set_cost_ns);
  use(&RankHistory::cost_calls, &pb::Totals::cost_calls, &pb::Totals::set_cost_calls);
}

int64_t count_within(int64_t value) { return std::clamp<int64_t>(value, 0, kMaxNs); }
bool is_time(int64_t ns) { return ns >= 0 && ns <= kMaxNs; }
constexpr double kMaxRate = 1e12;  // page faults a second
double finite(double value) { return std::isfinite(value) ? value : 0; }

// Sums of what was sent as differences; of numbers that a stranger chose.
class Running {
 public:
  explicit Running(const google::protobuf::RepeatedField<int64_t>& deltas) : deltas_(deltas) {}
  int64_t next() {
    if (at_ < deltas_.size()) sum_ += static_cast<uint64_t>(deltas_.Get(at_++));
    return static_cast<int64_t>(sum_);
  }

 private:
  const google::protobuf::RepeatedField<int64_t>& deltas_;
  int at_ = 0;
  uint64_t sum_ = 0;
};

void add_occurrences(const pb::Totals& from, int64_t shift_ns, RankHistory& to) {
  for (const pb::Occurrences& o : from.occurrences()) {
    if (o.kind() < 0 || o.kind() >= kOccurrenceKinds) continue;
    OccurrenceStats& stats = to.occurrences[static_cast<size_t>(o.kind())];
    stats.count += count_within(o.count());
    stats.total_ns += count_within(o.total_ns());
    const bool placed = o.recent_step_size() == o.recent_ns_size() &&
                        o.recent_begin_ns_size() == o.recent_ns_size();
    Running steps(o.recent_step()), begins(o.recent_begin_ns());
    for (const int64_t ns : o.recent_ns()) {
      OccurrenceStats::Recent recent{.duration_ns = count_within(ns)};
      const int64_t step = steps.next(), begin_ns = begins.next();
      if (placed && step >= 0 && step <= kMaxCount && is_time(begin_ns)) {
        recent.step = step;
        recent.begin_ns = begin_ns + shift_ns;
      }
      stats.recent.push_back(recent);
      if (stats.recent.size() > RankHistory::kMaxOccurrences) stats.recent.pop_front();
    }
  }
}

template <typename T>
std::optional<int64_t> bytes_if(bool has, T value) {
  return has && value >= 0 ? std::optional<int64_t>(value) : std::nullopt;
}

std::optional<double> within(bool has, double value, double most) {
  return has && value >= 0 && value <= most ? std::optional(value) : std::nullopt;
}

}  // namespace

std::string short_text(std::string_view text, size_t max_bytes) {
  return printable(text.substr(0, max_bytes), max_bytes);
}

void fill(const StepSample& from, pb::Step& to) {
  to.set_step(from.step);
  to.set_begin_ns(from.begin_ns);
  to.set_total_ns(from.total_ns());
  to.mutable_phase_ns()->Add(from.phase_ns.begin(), from.phase_ns.end());
  for (const auto& [name, ns] : from.user_phase_ns) {
    pb::UserPhase& phase = *to.add_user_phases();
    phase.set_name(name);
    phase.set_ns(ns);
  }
  const auto parts = part_fields();
  if (std::any_of(parts.begin(), parts.end(), [&](auto part) { return from.parts.*part != 0; }))
    for (const auto part : parts) to.add_part_ns(from.parts.*part);
  to.set_flags((from.failed ? kFailed : 0u) | (from.profiled ? kProfiled : 0u) |
               (from.compiled ? kCompiled : 0u) | (from.paused ? kPaused : 0u) |
               (from.incomplete ? kIncomplete : 0u));
  if (from.samples) to.set_samples(*from.samples);
  to.set_fetches(from.fetches);
  to.set_backwards(from.backwards);
  to.set_optimizer_steps(from.optimizer_steps);
  to.set_skipped_steps(from.skipped_steps);
  for (const SyncPoint& sync : from.syncs) {
    pb::Sync& out = *to.add_syncs();
    out.set_group(sync.group);
    out.set_index(sync.index);
    out.set_members(sync.members);
    out.set_ready_ns(sync.ready_ns - from.begin_ns);
    out.set_leave_ns(sync.leave_ns - from.begin_ns);
    out.set_together(sync.together);
  }
}

void fill(const MemorySample& from, pb::Memory& to) {
  to.set_mono_ns(from.mono_ns);
  to.set_step(from.step);
  if (from.rss_bytes) to.set_rss_bytes(*from.rss_bytes);
  if (from.anon_bytes) to.set_anon_bytes(*from.anon_bytes);
  if (from.worker_pss_bytes) to.set_worker_pss_bytes(*from.worker_pss_bytes);
  if (from.device_allocated_bytes) to.set_device_allocated_bytes(*from.device_allocated_bytes);
  if (from.cpu_cores) to.set_cpu_cores(*from.cpu_cores);
  if (from.cpu_wait_share) to.set_cpu_wait_share(*from.cpu_wait_share);
  if (from.disk_wait_share) to.set_disk_wait_share(*from.disk_wait_share);
  if (from.cpu_steal_share) to.set_cpu_steal_share(*from.cpu_steal_share);
  if (from.minor_faults_per_s) to.set_minor_faults_per_s(*from.minor_faults_per_s);
  if (from.major_faults_per_s) to.set_major_faults_per_s(*from.major_faults_per_s);
}

void fill(const RankHistory& from, pb::Identity& to) {
  to.set_local_rank(from.local_rank);
  to.set_world_size(from.world_size);
  to.set_attempt(from.attempt);
  to.set_pid(from.pid);
  to.set_executable(from.executable);
  to.set_python_version(from.python_version);
  to.set_torch_version(from.torch_version);
  to.set_facts(from.facts);
  to.set_first_begin_ns(from.first_begin_ns);
}

void fill_totals(const RankHistory& from, pb::Totals& to) {
  each_total([&](auto field, auto, auto set) { (to.*set)(from.*field); });
  for (size_t kind = 0; kind < kOccurrenceKinds; ++kind) {
    const OccurrenceStats& stats = from.occurrences[kind];
    if (stats.count == 0) continue;
    pb::Occurrences& out = *to.add_occurrences();
    out.set_kind(static_cast<int32_t>(kind));
    out.set_count(stats.count);
    out.set_total_ns(stats.total_ns);
    OccurrenceStats::Recent before{.step = 0};
    for (const OccurrenceStats::Recent& recent : stats.recent) {
      out.add_recent_ns(recent.duration_ns);
      out.add_recent_step(recent.step - before.step);
      out.add_recent_begin_ns(recent.begin_ns - before.begin_ns);
      before = recent;
    }
  }
}

void fill(const Doing& from, pb::Doing& to) {
  to.set_phase(from.phase);
  to.set_step(from.step);
  to.set_for_ns(from.for_ns);
  to.set_alive(from.alive);
}

void fill(const RunHistory& run, const NodeHistory* node, pb::NodeState& to) {
  if (node != nullptr) {
    to.set_cores_usable(node->cores_usable);
    to.set_cores_limit_reason(node->cores_limit_reason);
    if (node->memory_limit_bytes) to.set_memory_limit_bytes(*node->memory_limit_bytes);
    each_gauge(*node, [&](const Gauge& gauge) {
      pb::Gauge& out = *to.add_gauges();
      out.set_sum(gauge.sum);
      out.set_peak(gauge.peak);
      out.set_count(gauge.count);
      out.set_not_measured(gauge.not_measured);
    });
  }
  for (const std::string& text : run.notices) to.add_notices(text);
  for (const std::string& text : run.unobserved) to.add_unobserved(text);
  to.set_duration_ns(run.duration_ns);
}

std::optional<StepSample> step_of(const pb::Step& from) {
  if (from.step() < 0 || from.step() > kMaxCount || !is_time(from.begin_ns()) ||
      !is_time(from.total_ns()) || from.phase_ns_size() > kPhaseCount ||
      from.user_phases_size() > static_cast<int>(kMaxUserPhasesOfStep) ||
      from.syncs_size() > static_cast<int>(StepSample::kMaxSyncs))
    return std::nullopt;
  StepSample to;
  to.step = from.step();
  to.begin_ns = from.begin_ns();
  to.end_ns = to.begin_ns + from.total_ns();
  int64_t left_ns = from.total_ns();
  for (int i = 0; i < from.phase_ns_size(); ++i) {
    const int64_t ns = from.phase_ns(i);
    if (ns < 0 || ns > left_ns) return std::nullopt;
    left_ns -= ns;
    to.phase_ns[static_cast<size_t>(i)] = ns;
  }
  for (const pb::UserPhase& phase : from.user_phases()) {
    if (phase.ns() < 0 || phase.ns() > left_ns || phase.name().empty()) return std::nullopt;
    left_ns -= phase.ns();
    to.user_phase_ns.emplace_back(short_text(phase.name(), kMaxName), phase.ns());
  }
  to[Phase::kOther] += left_ns;  // phases add up to the step, whatever was sent
  const auto parts = part_fields();
  for (size_t i = 0; i < parts.size() && static_cast<int>(i) < from.part_ns_size(); ++i)
    to.parts.*parts[i] = std::clamp<int64_t>(from.part_ns(static_cast<int>(i)), 0, from.total_ns());
  to.failed = (from.flags() & kFailed) != 0;
  to.profiled = (from.flags() & kProfiled) != 0;
  to.compiled = (from.flags() & kCompiled) != 0;
  to.paused = (from.flags() & kPaused) != 0;
  to.incomplete = (from.flags() & kIncomplete) != 0;
  if (from.has_samples()) to.samples = std::clamp<int64_t>(from.samples(), 0, kMaxCount >> 20);
  to.fetches = std::max(from.fetches(), 0);
  to.backwards = std::max(from.backwards(), 0);
  to.optimizer_steps = std::max(from.optimizer_steps(), 0);
  to.skipped_steps = std::max(from.skipped_steps(), 0);
  for (const pb::Sync& sync : from.syncs()) {
    // A wait may have begun in an earlier step.
    if (std::abs(sync.ready_ns() / 2) > kMaxNs / 2 || std::abs(sync.leave_ns() / 2) > kMaxNs / 2 ||
        sync.leave_ns() < sync.ready_ns())
      return std::nullopt;
    to.syncs.push_back({.group = sync.group(),
                        .index = sync.index(),
                        .members = sync.members(),
                        .ready_ns = to.begin_ns + sync.ready_ns(),
                        .leave_ns = to.begin_ns + sync.leave_ns(),
                        .together = sync.together()});
  }
  return to;
}

std::optional<MemorySample> memory_of(const pb::Memory& from) {
  if (!is_time(from.mono_ns()) || from.step() < -1 || from.step() > kMaxCount) return std::nullopt;
  MemorySample to;
  to.mono_ns = from.mono_ns();
  to.step = from.step();
  to.rss_bytes = bytes_if(from.has_rss_bytes(), from.rss_bytes());
  to.anon_bytes = bytes_if(from.has_anon_bytes(), from.anon_bytes());
  to.worker_pss_bytes = bytes_if(from.has_worker_pss_bytes(), from.worker_pss_bytes());
  to.device_allocated_bytes =
      bytes_if(from.has_device_allocated_bytes(), from.device_allocated_bytes());
  if (from.has_cpu_cores() && std::isfinite(from.cpu_cores())) to.cpu_cores = from.cpu_cores();
  to.cpu_wait_share = within(from.has_cpu_wait_share(), from.cpu_wait_share(), 1);
  to.disk_wait_share = within(from.has_disk_wait_share(), from.disk_wait_share(), 1);
  to.cpu_steal_share = within(from.has_cpu_steal_share(), from.cpu_steal_share(), 1);
  to.minor_faults_per_s =
      within(from.has_minor_faults_per_s(), from.minor_faults_per_s(), kMaxRate);
  to.major_faults_per_s =
      within(from.has_major_faults_per_s(), from.major_faults_per_s(), kMaxRate);
  return to;
}

std::optional<Doing> doing_of(const pb::Doing& from) {
  if (from.phase().empty() || from.step() < 0 || !is_time(from.for_ns())) return std::nullopt;
  return Doing{short_text(from.phase(), kMaxName), from.step(), from.for_ns(), from.alive()};
}

void take_identity(const pb::Identity& from, RankHistory& to) {
  to.local_rank = std::clamp(from.local_rank(), -1, kMaxRank);
  to.world_size = std::clamp(from.world_size(), 1, kMaxRank);
  to.pid = std::max(from.pid(), 0);
  to.executable = short_text(from.executable(), kMaxText);
  to.python_version = short_text(from.python_version(), kMaxName);
  to.torch_version = short_text(from.torch_version(), kMaxName);
  to.facts = from.facts();
}

void take_totals(const pb::Totals& base, const pb::Totals& last, int64_t shift_ns,
                 RankHistory& to) {
  each_total([&](auto field, auto get, auto) {
    to.*field = count_within((base.*get)()) + count_within((last.*get)());
  });
  to.occurrences = {};
  add_occurrences(base, 0, to);
  add_occurrences(last, shift_ns, to);
}

void subtract(const pb::Totals& what, pb::Totals& from) {
  each_total([&](auto, auto get, auto set) {
    (from.*set)(std::max<int64_t>((from.*get)() - count_within((what.*get)()), 0));
  });
  for (const pb::Occurrences& o : what.occurrences())
    for (pb::Occurrences& sum : *from.mutable_occurrences()) {
      if (sum.kind() != o.kind()) continue;
      sum.set_count(std::max<int64_t>(sum.count() - count_within(o.count()), 0));
      sum.set_total_ns(std::max<int64_t>(sum.total_ns() - count_within(o.total_ns()), 0));
    }
}

void take_node(const pb::NodeState& from, NodeHistory& to) {
  to.cores_usable = std::max(finite(from.cores_usable()), 0.0);
  to.cores_limit_reason = short_text(from.cores_limit_reason(), kMaxText);
  to.memory_limit_bytes = bytes_if(from.has_memory_limit_bytes(), from.memory_limit_bytes());
  int i = 0;
  each_gauge(to, [&](Gauge& gauge) {
    if (i >= from.gauges_size()) return;
    const pb::Gauge& sent = from.gauges(i++);
    gauge.sum = finite(sent.sum());
    gauge.peak = finite(sent.peak());
    gauge.count = count_within(sent.count());
    gauge.not_measured = short_text(sent.not_measured(), kMaxText);
  });
}

}  // namespace stepscope::hub
