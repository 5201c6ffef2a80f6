#include "engine/slow_cause.h"

#include <algorithm>
#include <array>
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

// What may delay the sync points of `step`: all of it, and of the step before what came after its last one. The user's
// phases together: they are rare here, and this is asked for every step.
constexpr size_t kUser = kPhaseCount;
using Delays = std::array<double, kPhaseCount + 1>;

Delays before_syncs(const StepJoiner& joiner, int32_t rank, int64_t step) {
  Delays out{};
  const auto add = [&](const StepSample* sample, bool before) {
    if (sample == nullptr) return;
    for (size_t p = 0; p < kPhaseCount; ++p) {
      const auto phase = static_cast<Phase>(p);
      const bool early = phase == Phase::kInput || phase == Phase::kH2d ||
                         phase == Phase::kForward || phase == Phase::kBackward;
      if (phase == Phase::kSync || (before ? early : phase == Phase::kOptimizer)) continue;
      out[p] += static_cast<double>(sample->phase_ns[p]);
    }
    for (const auto& [name, ns] : sample->user_phase_ns) out[kUser] += static_cast<double>(ns);
  };
  add(joiner.sample(static_cast<size_t>(rank), step), false);
  add(joiner.sample(static_cast<size_t>(rank), step - 1), true);
  return out;
}

// The longest of the user's phases in the step.
std::string user_phase(const StepJoiner& joiner, int32_t rank, int64_t step) {
  std::string name;
  int64_t most = -1;
  for (const int64_t near : {step, step - 1})
    if (const StepSample* sample = joiner.sample(static_cast<size_t>(rank), near))
      for (const auto& [phase, ns] : sample->user_phase_ns)
        if (ns > most) {
          most = ns;
          name = phase;
        }
  return name;
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
  std::array<std::vector<double>, kPhaseCount + 1> usual;
  for (const int32_t rank : some_of(others)) {
    if (rank == late) continue;
    const Delays one = before_syncs(joiner, rank, step);
    for (size_t p = 0; p < one.size(); ++p) usual[p].push_back(one[p]);
  }
  const Delays own = before_syncs(joiner, late, step);
  std::vector<PhaseExcess> out;
  for (size_t p = 0; p < own.size(); ++p)
    if (const double more = own[p] - median(std::move(usual[p])); more > 0)
      out.push_back(
          {p == kUser ? user_phase(joiner, late, step) : std::string(kPhaseNames[p]), more});
  std::stable_sort(out.begin(), out.end(),
                   [](const PhaseExcess& x, const PhaseExcess& y) { return x.ns > y.ns; });
  const double sum = total(out);
  for (PhaseExcess& phase : out) phase.ns *= sum > 0 ? cost_ns / sum : 0;
  return out;
}

}  // namespace stepscope::engine
