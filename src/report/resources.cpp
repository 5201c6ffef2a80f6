#include "report/resources.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace stepscope::report {
namespace {

// Nodes together: averages and peaks are added (peaks of several nodes need not have been at one
// time).
Reading over_nodes(const RunHistory& run, Gauge NodeHistory::* member, const char* unit) {
  Reading reading{unit, {}, {}, {}, ""};
  for (const NodeHistory& node : run.nodes) {
    const Gauge& gauge = node.*member;
    if (const auto average = gauge.average();
        average && std::isfinite(*average) && std::isfinite(gauge.peak)) {
      reading.average = reading.average.value_or(0) + *average;
      reading.peak = reading.peak.value_or(0) + gauge.peak;
    } else if (reading.note.empty()) {
      reading.note = gauge.not_measured;
    }
  }
  if (reading.measured())
    reading.note.clear();
  else if (reading.note.empty())
    reading.note = "no reading was taken";
  return reading;
}

// Of the ranks and their workers. Ranks are read at the same instants, so that peaks can be added.
Reading job_cpu(const RunHistory& run) {
  Reading reading{"cores", {}, {}, {}, "no reading was taken"};
  std::map<int64_t, double> at;
  double average = 0;
  bool any = false;
  for (const RankHistory& r : run.ranks) {
    double sum = 0, count = 0;
    auto entry = at.begin();  // both are in the order of time
    for (const MemorySample& m : r.memory) {
      if (!m.cpu_cores) continue;
      sum += *m.cpu_cores;
      count += 1;
      entry = at.try_emplace(entry, m.mono_ns, 0.0);
      entry++->second += *m.cpu_cores;
    }
    if (count > 0) average += sum / count;
    any = any || count > 0;
  }
  if (!any) return reading;
  reading.average = average;
  reading.peak = 0;
  for (const auto& [when, cores] : at) reading.peak = std::max(*reading.peak, cores);
  reading.peak = std::max(*reading.peak, average);
  reading.note.clear();
  return reading;
}

// Rate over all steps: for runs too short to have a steady one.
std::optional<double> all_steps_rate(const RankHistory& r) {
  const int64_t ns = r.last_end_ns - r.first_begin_ns;
  if (r.steps == 0 || ns <= 0) return std::nullopt;
  return static_cast<double>(r.steps) * 1e9 / static_cast<double>(ns);
}

std::optional<double> all_steps_samples_rate(const RankHistory& r) {
  int64_t samples = 0, ns = 0;
  for (const StepSample& s : r.raw) {
    if (s.failed || !s.samples) continue;
    samples += *s.samples;
    ns += s.total_ns();
  }
  if (ns <= 0) return std::nullopt;
  return static_cast<double>(samples) * 1e9 / static_cast<double>(ns);
}

}  // namespace

void fill_resources(const RunHistory& run, Summary& summary) {
  Reading cpu = job_cpu(run);
  Reading memory = over_nodes(run, &NodeHistory::job_memory_bytes, "bytes");
  Reading memory_in_use = over_nodes(run, &NodeHistory::memory_bytes, "bytes");
  for (const NodeHistory& node : run.nodes) {
    if (node.cores_usable > 0) {
      cpu.limit = cpu.limit.value_or(0) + node.cores_usable;
      if (cpu.measured() && run.nodes.size() == 1) cpu.note = node.cores_limit_reason;
    }
    if (node.memory_limit_bytes)
      for (Reading* reading : {&memory, &memory_in_use})
        reading->limit = reading->limit.value_or(0) + static_cast<double>(*node.memory_limit_bytes);
  }
  summary.resources = {
      {"cpu", std::move(cpu)},
      {"cpu_machine", over_nodes(run, &NodeHistory::cpu_cores, "cores")},
      {"cpu_throttled", over_nodes(run, &NodeHistory::cpu_throttled_share, "share")},
      {"memory", std::move(memory)},
      {"memory_in_use", std::move(memory_in_use)},
      {"gpus", {"share", {}, {}, {}, "this version does not read devices"}},
      {"disk_read", over_nodes(run, &NodeHistory::disk_read_bps, "bytes/s")},
      {"disk_write", over_nodes(run, &NodeHistory::disk_write_bps, "bytes/s")},
      {"network_receive", over_nodes(run, &NodeHistory::net_rx_bps, "bytes/s")},
      {"network_send", over_nodes(run, &NodeHistory::net_tx_bps, "bytes/s")},
  };
}

void fill_throughput(const RunHistory& run, Summary& summary) {
  const bool steady = summary.steps.mean_ms.has_value();
  summary.throughput_over = steady ? "steady steps" : "all steps";
  if (steady && *summary.steps.mean_ms > 0) summary.steps_per_s = 1e3 / *summary.steps.mean_ms;
  double samples_per_s = 0;
  bool any = false;
  for (const RankHistory& r : run.ranks) {
    std::optional<double> rate;
    if (!steady) {
      const auto steps = all_steps_rate(r);
      if (steps && steps > summary.steps_per_s) summary.steps_per_s = steps;
      rate = all_steps_samples_rate(r);
    } else if (r.steady_samples_ns > 0) {
      rate = static_cast<double>(r.steady_samples) * 1e9 / static_cast<double>(r.steady_samples_ns);
    }
    samples_per_s += rate.value_or(0);
    any = any || rate.has_value();
  }
  if (any) summary.samples_per_s = samples_per_s;
}

}  // namespace stepscope::report
