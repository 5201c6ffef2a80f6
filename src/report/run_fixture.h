// For tests: runs as they end up in a history, with round numbers.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/facts.h"
#include "model/finding.h"
#include "model/history.h"

namespace stepscope::report::fixture {

struct Shape {  // of a steady step, in ms
  double input = 0, forward = 0, backward = 0, sync = 0, optimizer = 0, other = 0, h2d = 0,
         validation = 0;
  double loss = 0, epoch_start = 0, after_optimizer = 0;
  std::vector<std::pair<std::string, double>> user = {};
};

inline int64_t ns(double ms) { return static_cast<int64_t>(ms * 1e6); }

// Warm-up steps take twice as long; the last of ten is 20 % longer than the others.
inline StepSample step_of(const Shape& shape, int32_t rank, int64_t number, int64_t begin_ns) {
  const double slow = number < 10 ? 2 : number % 10 == 9 ? 1.2 : 1;
  StepSample s;
  s.rank = rank;
  s.step = number;
  s.begin_ns = begin_ns;
  s[Phase::kInput] = ns(shape.input * slow);
  s[Phase::kForward] = ns(shape.forward * slow);
  s[Phase::kBackward] = ns(shape.backward * slow);
  s[Phase::kSync] = ns(shape.sync * slow);
  s[Phase::kOptimizer] = ns(shape.optimizer * slow);
  s[Phase::kOther] = ns(shape.other * slow);
  s[Phase::kH2d] = ns(shape.h2d * slow);
  s[Phase::kValidation] = ns(shape.validation * slow);
  s.parts.loss_ns = ns(shape.loss * slow);
  s.parts.epoch_start_ns = ns(shape.epoch_start * slow);
  s.parts.other_after_optimizer_ns = ns(shape.after_optimizer * slow);
  s.end_ns = begin_ns;
  for (const int64_t phase : s.phase_ns) s.end_ns += phase;
  for (const auto& [name, ms] : shape.user) {
    s.user_phase_ns.emplace_back(name, ns(ms * slow));
    s.end_ns += ns(ms * slow);
  }
  s.samples = 32;
  s.fetches = s.backwards = s.optimizer_steps = 1;
  return s;
}

inline RankHistory rank_of(const Shape& shape, int32_t rank, int32_t world_size, int64_t steps) {
  RankHistory r;
  r.rank = rank;
  r.local_rank = rank;
  r.world_size = world_size;
  r.node = "trainer";
  r.python_version = "3.11.2";
  r.torch_version = "2.13.0";
  r.facts = kFactTorchImported | kFactRootModule | kFactDataLoader;
  for (int64_t i = 0; i < steps; ++i) r.add(step_of(shape, rank, i, r.last_end_ns), Settings{});
  r.records_written = steps * 6;
  r.cost_ns = steps * 2100;
  r.cost_calls = steps;
  for (int i = 0; i < 30; ++i) {
    MemorySample m;
    m.mono_ns = i * 1'000'000'000LL;
    m.step = i;
    m.cpu_cores = 0.8 + 0.01 * i;
    m.rss_bytes = m.anon_bytes = 1LL << 30;
    r.add(m);
  }
  return r;
}

inline RunHistory run_of(std::vector<RankHistory> ranks) {
  RunHistory run;
  run.name = "train-20260304-101112";
  run.id = "f00d";
  run.folder = "/home/me/project/stepscope-runs/train-20260304-101112";
  run.command = {"python", "train.py"};
  run.started_wall_ns = 1'772'619'072'000'000'000;
  run.duration_ns = 31'200'000'000;
  run.exit_code = 0;
  run.ranks = std::move(ranks);
  NodeHistory node;
  node.node = "trainer";
  node.cores_usable = 2;
  node.cores_limit_reason = "cgroup quota of /docker";
  node.memory_limit_bytes = 8LL << 30;
  node.cpu_cores.add(1.5);
  for (const double gb : {1.1, 1.3, 1.2}) node.job_memory_bytes.add(gb * (1 << 30));
  node.memory_bytes.add(2.0 * (1 << 30));
  node.disk_read_bps.add(12e6);
  node.disk_write_bps.add(0);
  node.net_rx_bps.not_measured = "/proc/net/dev: No such file or directory";
  node.net_tx_bps.not_measured = "/proc/net/dev: No such file or directory";
  node.cpu_throttled_share.add(0.05);
  run.nodes.push_back(std::move(node));
  return run;
}

inline Finding input_bound() {
  Finding f;
  f.code = "INPUT_BOUND";
  f.severity = Severity::kCritical;
  f.phase = "input";
  f.cause = "fetch";
  f.first_step = 10;
  f.last_step = 299;
  f.share = 0.38;
  f.cost_ms_per_step = 38.76;
  f.predicted_saving = 0.38;
  f.title = "38 % of each step waits for data";
  f.evidence = {{"input_share", 0.38, "share"},       {"share_low", 0.36, "share"},
                {"share_high", 0.41, "share"},        {"input_ms", 38.76, "ms"},
                {"steady_steps", 290, "steps"},       {"ranks", 1, "ranks"},
                {"epoch_start_share", 0.03, "share"}, {"cores_usable", 2, "cores"},
                {"cores_busy", 1.1, "cores"}};
  f.not_measured = {"where the workers' time goes (read, decode, collate)"};
  f.advice = {
      {"Load in up to 1 worker process a rank (DataLoader num_workers=1): 2 cores are usable "
       "(cgroup quota of "
       "/docker) for 1 rank on this node.",
       0.35, "Run again: the share of input falls and samples/s rise.", "Storage is what is slow."},
      {"Make each sample cheaper: decode and resize once and store the result; move random "
       "transforms to whole "
       "batches.",
       std::nullopt, "Time dataset[i] alone.", "The time goes into reading."},
      {"Leave pin_memory off.", 0.0, "Nothing to check.", "A later run uses an accelerator."}};
  return f;
}

inline Finding simple(const char* code, Severity severity, const char* title) {
  Finding f;
  f.code = code;
  f.severity = severity;
  f.title = title;
  return f;
}

struct Case {
  std::string name;
  RunHistory run;
  std::vector<Finding> findings;
};

inline Case one_rank() {
  const Shape shape{.input = 38,
                    .forward = 20,
                    .backward = 31,
                    .optimizer = 7,
                    .other = 4,
                    .loss = 2.5,
                    .epoch_start = 3,
                    .after_optimizer = 3};
  Finding also = simple("OVERHEAD", Severity::kWarning, "12 % of the time goes to checkpoints");
  return {"input_bound", run_of({rank_of(shape, 0, 1, 300)}), {input_bound(), also}};
}

inline Case four_ranks() {
  std::vector<RankHistory> ranks;
  for (int32_t r = 0; r < 4; ++r) {
    const double slow = r == 2 ? 48 : 0;
    ranks.push_back(rank_of({.input = 5 + slow,
                             .forward = 30,
                             .backward = 50,
                             .sync = 55 - slow,
                             .optimizer = 9,
                             .other = 1},
                            r, 4, 300));
    ranks.back().facts |= kFactDdp;
  }
  Finding f = input_bound();
  f.severity = Severity::kWarning;
  f.confidence = "possible";
  f.title = "11 % of each step waits for data  (rank 2 worst)";
  f.rank = 2;
  return {"four_ranks", run_of(std::move(ranks)), {f}};
}

inline Case no_steps() {
  RunHistory run = run_of({});
  run.nodes.front().job_memory_bytes = {};
  run.nodes.front().job_memory_bytes.not_measured = "no process of the run is visible";
  run.exit_code = 3;
  run.duration_ns = 420'000'000;
  run.unobserved = {"/usr/bin/python2.7 (pid 4711): no torch was imported",
                    "/opt/tool/python3.12 (pid 4712): stepscope is not installed for Python 3.12; "
                    "hint: /opt/tool/python3.12 -m pip install stepscope"};
  Finding f = simple("INSUFFICIENT_DATA", Severity::kInfo, "no training step was seen");
  f.advice = {{"Run stepscope doctor: it says what works here and what does not.", {}, "", ""}};
  return {"no_steps", run, {f}};
}

inline Case accelerator() {
  RankHistory r =
      rank_of({.input = 20, .forward = 40, .backward = 25, .optimizer = 5, .other = 4, .h2d = 6}, 0,
              1, 300);
  r.facts |= kFactAccelerator;
  return {"accelerator",
          run_of({r}),
          {simple("INSUFFICIENT_DATA", Severity::kInfo, "device time not measured")}};
}

inline Case drops_and_notices() {
  RankHistory r = rank_of({.forward = 300,
                           .backward = 600,
                           .optimizer = 90,
                           .validation = 12,
                           .user = {{"augment", 25}, {"log to the dashboard", 1.5}}},
                          0, 1, 150);
  r.facts = kFactTorchImported;
  r.records_dropped = 1234;
  r.incomplete_steps = 17;
  r.failed_steps = 2;
  r.profiled_steps = 5;
  r.steady_samples_ns = 0;
  RunHistory run = run_of({r});
  run.live = true;
  run.exit_code.reset();
  run.duration_ns = 4'000'000'000'000;
  run.folder =
      "/mnt/cluster/home/somebody/experiments/2026/q1/vision/resnet-50-a-very-long-name/runs/first";
  run.notices = {"the agent was restarted once",
                 "/dev/shm was nearly full: worker 3 of rank 0 was not recorded"};
  return {"drops_and_notices",
          run,
          {simple("COMPUTE_BOUND", Severity::kInfo,
                  "96 % of each step is forward, backward and optimizer")}};
}

inline Case many_ranks() {
  std::vector<RankHistory> ranks;
  for (int32_t r = 0; r < 64; ++r) {
    if (r == 7) continue;
    ranks.push_back(rank_of({.input = 1,
                             .forward = 30 + 0.1 * r,
                             .backward = 50,
                             .sync = 12 - 0.1 * r,
                             .optimizer = 9,
                             .other = 1},
                            r, 64, 40));
  }
  return {"many_ranks",
          run_of(std::move(ranks)),
          {simple("COMPUTE_BOUND", Severity::kInfo,
                  "88 % of each step is forward, backward and optimizer")}};
}

inline Case warmup_only() {
  RunHistory run =
      run_of({rank_of({.input = 1, .forward = 3, .backward = 5, .optimizer = 1}, 0, 1, 7)});
  return {
      "warmup_only",
      run,
      {simple("INSUFFICIENT_DATA", Severity::kInfo, "7 steps are too few: 0 of 20 steady steps")}};
}

inline std::vector<Case> all_cases() {
  return {one_rank(),          four_ranks(), no_steps(),   accelerator(),
          drops_and_notices(), many_ranks(), warmup_only()};
}

}  // namespace stepscope::report::fixture
