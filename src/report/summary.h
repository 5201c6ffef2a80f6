// The view-model: what is said of a run, in numbers and sentences. Every view formats it and
// computes nothing.
//
// Thread safety: plain values. Invariants: a value that was not measured is absent, never 0; shares
// are 0 to 1 of the mean steady step; phases (the user's included) add up to it; the twelve phases
// are always there, in their order.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/finding.h"
#include "model/history.h"
#include "report/loaders.h"

namespace stepscope::report {

inline constexpr int kSummarySchema = 1;

struct PhaseRow {
  std::string name;
  bool user = false;  // the user's own, by stepscope.phase("name")
  bool measured = false;
  bool applicable =
      true;  // false: the run has no such thing (sync with one rank), so nothing is missing
  std::optional<double> mean_ms;  // of the steady steps; over ranks the mean of their means
  std::optional<double> share;
  std::string note;  // why it was not measured, or what must be known of it; may be empty
};

// Lies inside a phase and is not added to it: loss in forward, epoch_start in input, the places of
// other.
struct PartRow {
  std::string name;
  std::string phase;
  std::optional<double> mean_ms, share;  // absent with the phase
};

// Checkpoints, validations, epoch starts, ... of the rank that had most, also those outside any
// step.
struct OccurrenceRow {
  std::string name;
  int64_t count = 0;
  double total_ms = 0;
  std::optional<double> median_ms;  // absent when there were none
};

struct StepsRow {
  int64_t count = 0;   // finished well, warm-up included
  int64_t warmup = 0;  // how many of these
  int64_t failed = 0;  // not in count
  int64_t profiled = 0, incomplete = 0;
  std::optional<double> mean_ms, median_ms, p95_ms;  // steady steps
  std::optional<double> warmup_mean_ms;
  bool exact = true;  // median and p95 from every step; else from blocks of old ones
  // Training batches that a steady step takes: above 1 gradients are accumulated. Empty where none
  // were seen.
  std::optional<double> micro_steps{};
};

struct RankRow {
  int32_t rank = 0;
  std::string node;
  StepsRow steps;
  std::vector<PhaseRow> phases;
  std::optional<double> own_ms;   // step without sync: what the rank did itself
  std::optional<double> rest_ms;  // all but input, forward, backward, sync, optimizer
};

// What a rank of a live run does at this moment.
struct NowRow {
  int32_t rank = 0;
  std::string node, phase;
  int64_t step = 0;
  double since_s = 0;  // how long already
  bool alive = false;  // its process
};

struct Reading {
  std::string unit;  // "cores", "bytes", "bytes/s", "share"
  std::optional<double> average, peak, limit;
  std::string note;  // what limits it; or why it was not measured
  bool measured() const { return average.has_value(); }
};

struct NotMeasured {
  std::string what;
  std::string why;
};

struct Summary {
  // run
  std::string name, id, folder, started;  // started: ISO 8601, UTC; empty when not known
  std::vector<std::string> command;
  std::optional<int> exit_code;
  bool live = false;
  double duration_s = 0;
  int64_t rank_count = 0, world_size = 0, node_count = 0;
  std::string python_version, torch_version;  // of the lowest rank
  std::string clock = "host";                 // whose clock the phases are of
  std::map<std::string, std::string> settings;

  Finding verdict;  // a copy of findings.front()
  std::vector<Finding> findings;
  StepsRow steps;                // count, warmup, failed: of the rank that came furthest
  std::vector<PhaseRow> phases;  // twelve, then the user's by name
  std::vector<PartRow> parts;
  std::vector<OccurrenceRow> occurrences;
  std::vector<RankRow> ranks;                // by rank
  std::vector<NowRow> now;                   // by rank; empty when the run has ended
  std::vector<LoaderRow> loaders;            // by rank and number
  std::map<std::string, Reading> resources;  // cpu, memory, gpus, ...
  std::optional<double> samples_per_s;       // over ranks and micro-steps
  std::optional<double> steps_per_s;
  std::string throughput_over;  // "steady steps", or "all steps" when none was steady

  int64_t records_written = 0, records_dropped = 0;
  std::optional<double> cost_us_per_step;  // our own, on the step thread
  std::vector<std::string> unobserved;
  std::vector<std::string> notices;
  std::vector<NotMeasured> not_measured;
  std::map<std::string, std::string> files;  // summary_json, summary_txt, run_db: absolute paths
  std::string next;                          // the command to type
};

}  // namespace stepscope::report
