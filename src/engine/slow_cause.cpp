#include "engine/slow_cause.h"

#include <algorithm>
#include <map>

#include "engine/median.h"

namespace stepscope::engine {
namespace {

constexpr size_t kMostRanks = 9;
using Phases = std::map<std::string, double>;

std::vector<int32_t> some_of(std::span<const int32_t> ranks) {
  const size_t stride = ranks.size() / kMostRanks + 1;
  std::vector<int32_t> out;
  for (size_t i = 0; i < ranks.size(); i += stride) out.push_back(ranks[i]);
  return out;
}

void add_phases(const StepSample& sample, Phases& out) {
  for (int p = 0; p < kPhaseCount; ++p)
    if (static_cast<Phase>(p) != Phase::kSync)
      out[std::string(kPhaseNames[static_cast<size_t>(p)])] +=
          static_cast<double>(sample.phase_ns[static_cast<size_t>(p)]);
  for (const auto& [name, ns] : sample.user_phase_ns) out[name] += static_cast<double>(ns);
}

// Of each phase the median (or mean) over the steps, then the median over the ranks.
Phases typical(const StepJoiner& joiner, const std::vector<int32_t>& ranks,
               std::pair<int64_t, int64_t> steps, bool means) {
  std::map<std::string, std::vector<double>> by_rank;
  for (const int32_t rank : ranks) {
    std::map<std::string, std::vector<double>> by_step;
    size_t count = 0;
    for (int64_t step = steps.first; step <= steps.second; ++step) {
      const StepSample* sample = joiner.sample(static_cast<size_t>(rank), step);
      if (sample == nullptr || !sample->steady()) continue;
      Phases one;
      add_phases(*sample, one);
      for (const auto& [name, ns] : one) {
        auto& values = by_step[name];
        values.resize(count);  // 0 where a user's phase was not
        values.push_back(ns);
      }
      ++count;
    }
    for (auto& [name, values] : by_step) {
      values.resize(count);
      double sum = 0;
      for (const double value : values) sum += value;
      by_rank[name].push_back(means ? sum / static_cast<double>(count) : median(values));
    }
  }
  Phases out;
  for (auto& [name, values] : by_rank) {
    values.resize(ranks.size());
    out[name] = median(values);
  }
  return out;
}

double mean_samples(const StepJoiner& joiner, const std::vector<int32_t>& ranks,
                    std::pair<int64_t, int64_t> steps) {
  double sum = 0, count = 0;
  for (const int32_t rank : ranks)
    for (int64_t step = steps.first; step <= steps.second; ++step) {
      const StepSample* sample = joiner.sample(static_cast<size_t>(rank), step);
      if (sample == nullptr || !sample->samples) continue;
      sum += static_cast<double>(*sample->samples);
      count += 1;
    }
  return count > 0 ? sum / count : 0;
}

std::vector<PhaseExcess> differences(const Phases& slow, const Phases& usual) {
  std::vector<PhaseExcess> out;
  for (const auto& [name, ns] : slow) {
    const auto other = usual.find(name);
    const double excess = ns - (other == usual.end() ? 0 : other->second);
    if (excess > 0) out.push_back({name, excess});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const PhaseExcess& a, const PhaseExcess& b) { return a.ns > b.ns; });
  return out;
}

double total(const std::vector<PhaseExcess>& phases) {
  double sum = 0;
  for (const PhaseExcess& phase : phases) sum += phase.ns;
  return sum;
}

// What may delay the sync points of `step`: all of it, and of the step before what came after its last one.
Phases before_syncs(const StepJoiner& joiner, int32_t rank, int64_t step) {
  Phases out;
  if (const StepSample* sample = joiner.sample(static_cast<size_t>(rank), step)) {
    add_phases(*sample, out);
    out[std::string(phase_name(Phase::kOptimizer))] = 0;
  }
  if (const StepSample* sample = joiner.sample(static_cast<size_t>(rank), step - 1)) {
    Phases before;
    add_phases(*sample, before);
    for (const Phase early : {Phase::kInput, Phase::kH2d, Phase::kForward, Phase::kBackward})
      before.erase(std::string(phase_name(early)));
    for (const auto& [name, ns] : before) out[name] += ns;
  }
  return out;
}

}  // namespace

SlowCause explain_slow(const StepJoiner& joiner, std::span<const int32_t> slow,
                       std::span<const int32_t> fastest, std::pair<int64_t, int64_t> steps,
                       double excess_ns) {
  const std::vector<int32_t> some_slow = some_of(slow), some_fast = some_of(fastest);
  SlowCause out;
  out.phases = differences(typical(joiner, some_slow, steps, false),
                           typical(joiner, some_fast, steps, false));
  if (total(out.phases) < excess_ns / 2)
    out.phases = differences(typical(joiner, some_slow, steps, true),
                             typical(joiner, some_fast, steps, true));
  const double own = mean_samples(joiner, some_slow, steps);
  const double usual = mean_samples(joiner, some_fast, steps);
  if (own > 0 && usual > 0) out.samples_ratio = own / usual;
  return out;
}

std::vector<PhaseExcess> explain_late(const StepJoiner& joiner, int32_t late,
                                      std::span<const int32_t> others, int64_t step,
                                      double cost_ns) {
  std::map<std::string, std::vector<double>> by_phase;
  size_t count = 0;
  for (const int32_t rank : some_of(others)) {
    if (rank == late) continue;
    for (const auto& [name, ns] : before_syncs(joiner, rank, step)) {
      auto& values = by_phase[name];
      values.resize(count);
      values.push_back(ns);
    }
    ++count;
  }
  Phases usual;
  for (auto& [name, values] : by_phase) {
    values.resize(count);
    usual[name] = median(values);
  }
  std::vector<PhaseExcess> out = differences(before_syncs(joiner, late, step), usual);
  const double sum = total(out);
  for (PhaseExcess& phase : out) phase.ns *= sum > 0 ? cost_ns / sum : 0;
  return out;
}

}  // namespace stepscope::engine
