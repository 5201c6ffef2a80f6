// Every threshold and limit, with the defaults of diagnosis.md. One table drives parsing, --help,
// docs and the `settings` object of summary.json (settings.cpp).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace stepscope {

struct Settings {
  // diagnosis, shares of the step from 0 to 1. A finding fires at its warning; it is critical when
  // it is at both.
  double input_warning = 0.10, input_critical = 0.20;
  double h2d_warning = 0.10, h2d_critical = 0.20;
  double sync_warning = 0.10, sync_critical = 0.20;
  double optimizer_warning = 0.25, optimizer_critical = 0.40;
  double overhead_warning = 0.10, overhead_critical = 0.20;
  double compute_bound = 0.80;
  int64_t warmup_steps = 10;
  int64_t min_steady_steps = 20;
  // memory
  int64_t memory_min_steps = 100;
  double memory_creep_share = 0.05;
  int64_t memory_creep_bytes = 64LL << 20;
  int64_t memory_creep_any_bytes = 256LL << 20;
  double memory_pressure_warning = 0.90, memory_pressure_critical = 0.97;
  double memory_imbalance = 0.20;
  // several ranks. Shares of the step; p is of the sign test, divided by 4 x ranks
  double straggler_delta = 0.05, straggler_margin = 0.03, straggler_p = 0.0001;
  double gain_warning = 0.03, gain_critical = 0.10;
  double node_ranks = 0.50, node_others = 0.10;
  double spikes_cost = 0.40, spikes_syncs = 0.02;
  double leftover_cost = 0.05, jitter_warning = 0.20, fit_takes = 0.20;
  double blocked_us = 50;
  // over time
  double slowdown = 0.10;
  int64_t slowdown_steps = 20, ramp_steps = 200;
  double stuck_s = 30, stuck_steps = 20, stuck_long_times = 10;
  // recording
  int64_t segment_kb = 256, worker_segment_kb = 64;
  double shm_share = 0.05;  // of the free space, all segments together
  int64_t keep_raw_steps = 2000;

  // Unknown key or unreadable value: an Error that names both and the nearest key.
  Status set(std::string_view key, std::string_view value);
  std::map<std::string, std::string> effective() const;
};

// --set beats STEPSCOPE_* (STEPSCOPE_INPUT_WARNING=0.2) beats ./stepscope.toml (key = value, flat).
// Other variables named STEPSCOPE_* are not settings and are left alone; an empty one counts as
// unset.
Result<Settings> load_settings(const std::map<std::string, std::string>& from_flags,
                               const std::map<std::string, std::string>& environment,
                               std::string_view toml_text, std::string_view toml_name);

}  // namespace stepscope
