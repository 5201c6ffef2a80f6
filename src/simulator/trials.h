// Seeded trials of the engine: a simulated run, and whether what is said of it is right. For tests (a tenth of the
// counts) and bench/compare.cpp (all of them), so that both mean the same. Header only: the stage itself knows no engine.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "simulator/simulator.h"

namespace stepscope::simulator {

struct Outcome {
  bool right = false;
  std::string said;  // codes and titles
};

struct Trial {
  const char* name;
  std::function<Outcome(uint64_t seed)> run;
};

inline std::vector<Finding> findings_of(RunHistory& run) {
  run.comparison = engine::compare_ranks(run);
  return engine::diagnose(run);
}

inline std::string said(const std::vector<Finding>& findings) {
  std::string out;
  for (const Finding& f : findings) out += f.code + ": " + f.title + "\n";
  return out;
}

inline bool is_about_ranks(const Finding& f) {
  return f.code == "STRAGGLER" || f.code == "SPIKES" || f.code == "IMBALANCE";
}

// Right: exactly one finding of the kinds that accuse ranks, and it satisfies `matches`.
template <typename Matches>
Outcome only(const Options& options, Matches matches) {
  RunHistory run = simulate(options);
  const std::vector<Finding> findings = findings_of(run);
  size_t about = 0, matching = 0;
  for (const Finding& f : findings) {
    about += is_about_ranks(f);
    matching += is_about_ranks(f) && matches(f);
  }
  return {about == 1 && matching == 1, said(findings)};
}

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed * 7919 + 17) {}
  int32_t below(int32_t n) { return static_cast<int32_t>(random_() % static_cast<uint64_t>(n)); }
  template <typename T, size_t N>
  T of(const std::array<T, N>& values) {
    return values[static_cast<size_t>(below(N))];
  }

 private:
  std::mt19937_64 random_;
};

inline Options with(uint64_t seed, int32_t ranks, int64_t steps, const std::string& fault) {
  Options options;
  options.seed = seed;
  options.ranks = ranks;
  options.steps = steps;
  if (!fault.empty()) options.faults.push_back(*parse_fault(fault));
  return options;
}

inline constexpr std::array kPhases = {"input", "forward", "backward", "optimizer"};
inline constexpr std::array<int32_t, 6> kRankCounts = {2, 4, 8, 16, 32, 64};

inline Outcome slow_rank(uint64_t seed, const std::string& more, int64_t steps) {
  Draw draw(seed);
  const int32_t ranks = draw.of(kRankCounts), rank = draw.below(ranks);
  const std::string phase = draw.of(kPhases);
  return only(with(seed, ranks, steps,
                   "rank=" + std::to_string(rank) + " phase=" + phase + " add=15% " + more),
              [&](const Finding& f) {
                return f.code == "STRAGGLER" && f.pattern == "persistent" &&
                       f.scope == Scope::kRank && f.rank == rank && f.phase == phase;
              });
}

inline Outcome slow_node(uint64_t seed) {
  Draw draw(seed);
  const int32_t nodes = 2 + draw.below(7), node = draw.below(nodes);
  const int32_t each = 2 << draw.below(3);
  Options options = with(seed, nodes * each, 100, "node=" + std::to_string(node) + " add=15%");
  options.nodes = nodes;
  return only(options, [&](const Finding& f) {
    return f.code == "STRAGGLER" && f.pattern == "persistent" && f.scope == Scope::kNode &&
           f.node == "node" + std::to_string(node);
  });
}

inline Outcome everybody(uint64_t seed, const std::string& fault, int64_t steps,
                         const char* pattern) {
  Draw draw(seed);
  RunHistory run =
      simulate(with(seed, draw.below(7) == 0 ? 1 : draw.of(kRankCounts), steps, fault));
  const std::vector<Finding> findings = findings_of(run);
  size_t slower = 0;
  bool others = false;
  for (const Finding& f : findings) {
    others |= is_about_ranks(f);
    slower += f.code == "SLOWED_DOWN" && f.pattern == pattern && f.scope == Scope::kJob && !f.rank;
  }
  return {slower == 1 && !others, said(findings)};
}

inline Outcome rotating(uint64_t seed) {
  Draw draw(seed);
  return only(with(seed, draw.of(kRankCounts), 100, "rotating add=15% tokens=yes"),
              [](const Finding& f) {
                return f.code == "IMBALANCE" && f.pattern == "rotating" && f.scope == Scope::kJob;
              });
}

inline Outcome two_spikes(uint64_t seed) {
  Draw draw(seed);
  return only(with(seed, draw.of(kRankCounts), 100, "spike add=2s every=50 phase=input"),
              [](const Finding& f) {
                return f.code == "SPIKES" && f.pattern == "spikes" && f.phase == "input";
              });
}

inline std::vector<Trial> faults_to_name() {
  return {
      {"+15 % on a rank", [](uint64_t s) { return slow_rank(s, "", 100); }},
      {"+15 % on a node", slow_node},
      {"+15 % on everybody",
       [](uint64_t s) { return everybody(s, "all add=15% from=50", 100, "change"); }},
      {"rotating +15 % with tokens", rotating},
      {"2 spikes of 20 steps", two_spikes},
      {"ramp +15 %, everybody",
       [](uint64_t s) { return everybody(s, "all add=15% ramp", 300, "ramp"); }},
      {"ramp +15 %, a rank", [](uint64_t s) { return slow_rank(s, "ramp", 300); }},
  };
}

// A healthy run accuses no one: no rank, node or group is named with a gain of 1 % or more, nothing slowed down.
inline Outcome healthy(uint64_t seed, int32_t most_doublings = 9) {
  Draw draw(seed);
  Options options = with(seed, 2 << draw.below(most_doublings), 300, "");
  options.heavy = draw.below(2) == 1;
  options.spread = 0.01;
  RunHistory run = simulate(options);
  const std::vector<Finding> findings = findings_of(run);
  bool accused = false;
  for (const Finding& f : findings) {
    const bool names = is_about_ranks(f) || f.rank || f.node;
    double gain = f.predicted_saving.value_or(0);
    for (const Evidence& e : f.evidence)
      if (e.name == "run_gain") gain = std::max(gain, e.value);
    accused |= (names && gain >= 0.01) || f.code == "SLOWED_DOWN";
  }
  return {!accused, std::to_string(options.ranks) + (options.heavy ? " heavy\n" : " normal\n") +
                        said(findings)};
}

}  // namespace stepscope::simulator
