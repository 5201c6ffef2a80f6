// For tests: a node's history from a seed, and what of a history must be equal at the hub.
#pragma once

#include <random>
#include <sstream>
#include <string>

#include "hub/delta.h"
#include "hub/job.h"
#include "model/history.h"

namespace stepscope::hub::fixture {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  int64_t number(int64_t high) { return std::uniform_int_distribution<int64_t>(0, high)(engine_); }
  bool coin() { return number(1) == 1; }

 private:
  std::mt19937_64 engine_;
};

inline StepSample some_step(Random& random, int32_t rank, int64_t number, int64_t begin_ns) {
  StepSample s;
  s.rank = rank;
  s.step = number;
  s.begin_ns = begin_ns;
  int64_t total = 0;
  for (int64_t& ns : s.phase_ns) total += ns = random.coin() ? random.number(10'000'000) : 0;
  if (random.number(4) == 0) {
    s.user_phase_ns = {{"tokenise", random.number(1000)}};
    total += s.user_phase_ns[0].second;
  }
  if (random.coin()) s.parts.loss_ns = s.parts.recompute_ns = random.number(total);
  s.end_ns = begin_ns + total;
  s.failed = random.number(20) == 0;
  s.profiled = random.number(20) == 0;
  s.compiled = random.number(20) == 0;
  s.paused = random.number(20) == 0;
  s.incomplete = random.number(20) == 0;
  if (random.coin()) s.samples = random.number(512);
  s.fetches = static_cast<int32_t>(random.number(4));
  s.backwards = static_cast<int32_t>(random.number(4));
  s.optimizer_steps = static_cast<int32_t>(random.number(4));
  s.skipped_steps = static_cast<int32_t>(random.number(4));
  for (int64_t i = random.number(2); i > 0; --i)
    s.syncs.push_back({.group = static_cast<uint64_t>(random.number(INT64_MAX)),
                       .index = static_cast<uint32_t>(number),
                       .members = 4,
                       .ready_ns = begin_ns - random.number(100) + 50,
                       .leave_ns = begin_ns + 100 + random.number(1000),
                       .together = random.coin()});
  return s;
}

// A node whose ranks make steps, as an agent's history has it.
class Node {
 public:
  Node(uint64_t seed, std::string name, std::string instance, int32_t first_rank, int32_t ranks,
       int32_t world)
      : random_(seed), name_(std::move(name)), instance_(std::move(instance)) {
    run.id = "job";
    run.nodes.emplace_back().node = name_;
    for (int32_t r = first_rank; r < first_rank + ranks; ++r) add_rank(r, world);
    clock_ns_ = 1'000'000'000 + random_.number(int64_t{1} << 50);  // no two hosts agree
  }

  void add_rank(int32_t number, int32_t world) {
    RankHistory& rank = run.ranks.emplace_back();
    rank.rank = number;
    rank.world_size = world;
    rank.pid = 100 + number;
    rank.executable = "/usr/bin/python3";
    rank.node = name_;
  }

  void make_steps(int64_t count) {
    for (; count > 0; --count) {
      for (RankHistory& rank : run.ranks)
        rank.add(some_step(random_, rank.rank, rank.steps + rank.failed_steps, clock_ns_),
                 run.settings);
      clock_ns_ += 200'000'000;
      for (RankHistory& rank : run.ranks) {
        if (random_.number(9) == 0)
          rank.add(Occurrence{rank.rank, OccurrenceKind::kCheckpoint, rank.steps, clock_ns_,
                              clock_ns_ + 5000});
        if (random_.number(3) == 0) {
          MemorySample memory;
          memory.mono_ns = clock_ns_;
          memory.step = rank.steps;
          memory.rss_bytes = random_.number(1 << 30);
          rank.add(memory);
        }
        rank.records_written += 30;
        rank.doing = Doing{"forward", rank.steps, 1000, true};
      }
      run.nodes[0].cpu_cores.add(static_cast<double>(random_.number(8)));
    }
  }

  pb::Join join() const {
    pb::Join out;
    out.set_run_id(run.id);
    out.set_run_name("train");
    out.set_node(name_);
    out.set_instance(instance_);
    return out;
  }

  RunHistory run;

 private:
  Random random_;
  std::string name_, instance_;
  int64_t clock_ns_;
};

// Everything that a summary is made from.
inline std::string text_of(const RankHistory& r) {
  std::ostringstream out;
  out << "rank " << r.rank << ' ' << r.node << ' ' << r.world_size << ' ' << r.attempt << ' '
      << r.pid << ' ' << r.executable << ' ' << r.facts << '\n'
      << r.steps << ' ' << r.warmup_steps << ' ' << r.failed_steps << ' ' << r.profiled_steps << ' '
      << r.incomplete_steps << ' ' << r.first_begin_ns << ' ' << r.last_end_ns << ' '
      << r.outside_ns << ' ' << r.warmup_total_ns << ' ' << r.steady_samples << ' '
      << r.steady_samples_ns << ' ' << r.steady_fetches << ' ' << r.steady_backwards << ' '
      << r.steady_optimizer_steps << ' ' << r.skipped_steps << ' ' << r.records_written << '\n';
  for (const StepSample& s : r.raw) {
    out << s.rank << ' ' << s.step << ' ' << s.begin_ns << ' ' << s.end_ns << ' ' << s.failed
        << s.profiled << s.compiled << s.paused << s.incomplete << s.warmup << ' '
        << s.samples.value_or(-1) << ' ' << s.fetches << ' ' << s.backwards << ' '
        << s.optimizer_steps << ' ' << s.skipped_steps << ' ' << s.parts.loss_ns << ' '
        << s.parts.recompute_ns << ':';
    for (const int64_t ns : s.phase_ns) out << ' ' << ns;
    for (const auto& [name, ns] : s.user_phase_ns) out << ' ' << name << '=' << ns;
    for (const SyncPoint& p : s.syncs)
      out << " (" << p.group << ' ' << p.index << ' ' << p.members << ' ' << p.ready_ns << ' '
          << p.leave_ns << ' ' << p.together << ')';
    out << '\n';
  }
  for (const auto& level : r.rollups)
    for (const StepBlock& b : level)
      out << "block " << b.first_step << ' ' << b.last_step << ' ' << b.count << ' '
          << b.mean_ns[kPhaseCount] << '\n';
  for (const OccurrenceStats& o : r.occurrences) {
    out << o.count << ' ' << o.total_ns << ':';
    for (const auto& recent : o.recent)
      out << ' ' << recent.step << '@' << recent.begin_ns << '+' << recent.duration_ns;
    out << '\n';
  }
  for (const MemorySample& m : r.memory)
    out << m.mono_ns << ' ' << m.step << ' ' << m.rss_bytes.value_or(-1) << '\n';
  return out.str();
}

}  // namespace stepscope::hub::fixture
