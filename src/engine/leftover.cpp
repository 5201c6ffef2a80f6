#include "engine/leftover.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/median.h"
#include "engine/slow_cause.h"

namespace stepscope::engine {
namespace {

constexpr double kLeastFitSteps = 30;      // a slope of fewer fits anything
constexpr double kWorthExplaining = 0.02;  // of the step
constexpr double kLeastBin_ns = 1000;

// Four bins an octave, from the exponent and the two highest bits of the fraction.
size_t bin_of(double ns) {
  if (!(ns >= kLeastBin_ns)) return 0;
  const auto bits = std::bit_cast<uint64_t>(ns / kLeastBin_ns);
  const uint64_t octave = (bits >> 52U) - 1023, quarter = (bits >> 50U) & 3U;
  return std::min<size_t>(SizeHistogram::kBins - 1, 1 + octave * 4 + quarter);
}

double bin_begin(size_t bin) {
  if (bin == 0) return 0;
  const auto octave = static_cast<double>((bin - 1) / 4),
             quarter = static_cast<double>((bin - 1) % 4);
  return kLeastBin_ns * std::exp2(octave) * (1 + quarter / 4);
}

void add(SizeHistogram& h, double ns) {
  const size_t bin = bin_of(ns);
  h.count[bin] += 1;
  h.sum[bin] += ns;
}

// The rest of a full list is thinned by its least entry, so that who is late most stays (Misra and Gries 1982).
void add_late(std::vector<std::pair<int32_t, double>>& late, int32_t rank, double cost) {
  for (auto& [known, sum] : late)
    if (known == rank) {
      sum += cost;
      return;
    }
  if (late.size() < Leftover::kMaxLate) {
    late.emplace_back(rank, cost);
    return;
  }
  const auto least = std::min_element(
      late.begin(), late.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const double taken = std::min(least->second, cost);
  for (auto& entry : late) entry.second -= taken;
  if (cost > taken) *least = {rank, cost - taken};
}

void add_spike(std::vector<Spike>& spikes, Spike spike) {
  const auto at = std::find_if(spikes.begin(), spikes.end(),
                               [&](const Spike& s) { return s.cost_ns < spike.cost_ns; });
  spikes.insert(at, std::move(spike));
  if (spikes.size() > Leftover::kMaxSpikes) spikes.pop_back();
}

struct SyncCost {
  double cost = 0, median = 0;
  int32_t late = -1;  // position
};

SyncCost cost_of(const std::vector<float>& work, const std::vector<char>& mended,
                 std::vector<float>& scratch) {
  SyncCost out;
  scratch.clear();
  for (size_t r = 0; r < work.size(); ++r) {
    if (work[r] == kAbsent || mended[r] != 0) continue;
    if (out.late < 0 || work[r] > work[static_cast<size_t>(out.late)])
      out.late = static_cast<int32_t>(r);
    scratch.push_back(work[r]);
  }
  if (scratch.size() < 2) {
    out.late = -1;
    return out;
  }
  const double longest = work[static_cast<size_t>(out.late)];
  const auto at = std::find(scratch.begin(), scratch.end(), work[static_cast<size_t>(out.late)]);
  std::swap(*at, scratch.back());
  scratch.pop_back();
  const auto others = scratch.size();
  const double median_of_others = median_of(scratch);
  out.cost = std::max(0.0, longest - median_of_others);
  // The median of all of two is between them; of more the others' will do.
  out.median = others == 1 ? (longest + median_of_others) / 2 : median_of_others;
  return out;
}

// Work against samples, both less their mean over the ranks of the step.
class Fit {
 public:
  Fit(Leftover& leftover, const JoinedStep& step, const std::vector<char>& mended,
      const StepJoiner& joiner)
      : step_(step) {
    samples_.assign(step.work.size(), 0);
    double sum = 0, work = 0, count = 0;
    for (size_t r = 0; r < step.work.size(); ++r) {
      if (step.work[r] == kAbsent || mended[r] != 0) continue;
      const StepSample* sample = joiner.sample(r, step.step);
      if (sample == nullptr || !sample->samples) return;
      samples_[r] = static_cast<double>(*sample->samples);
      sum += samples_[r];
      work += step.work[r];
      count += 1;
    }
    if (count < 2) return;
    double square = 0;
    for (size_t r = 0; r < step.work.size(); ++r) {
      if (step.work[r] == kAbsent || mended[r] != 0) continue;
      samples_[r] -= sum / count;
      square += samples_[r] * samples_[r];
      leftover.samples_work += samples_[r] * (step.work[r] - work / count);
    }
    leftover.samples_square += square;
    if (leftover.samples_square <= 0 || leftover.steps < kLeastFitSteps) return;
    slope_ = leftover.samples_work / leftover.samples_square;
    known_ = true;
  }
  bool known() const { return known_; }
  // The work of a sync less what the samples explain of it.
  std::vector<float> without(const JoinedSync& sync) const {
    std::vector<float> out = sync.work;
    for (size_t r = 0; r < out.size(); ++r) {
      if (out[r] == kAbsent || step_.work[r] <= 0) continue;
      const double part = out[r] / step_.work[r];
      out[r] = static_cast<float>(std::max(0.0, out[r] - slope_ * samples_[r] * part));
    }
    return out;
  }

 private:
  const JoinedStep& step_;
  std::vector<double> samples_;
  double slope_ = 0;
  bool known_ = false;
};

bool any_samples(const StepJoiner& joiner, const JoinedStep& step) {
  for (size_t r = 0; r < step.work.size(); ++r)
    if (step.work[r] != kAbsent) {
      const StepSample* sample = joiner.sample(r, step.step);
      return sample != nullptr && sample->samples.has_value();
    }
  return false;
}

}  // namespace

void add_leftover(Leftover& leftover, const JoinedStep& step, const std::vector<char>& mended,
                  const RunHistory& run, const StepJoiner& joiner) {
  leftover.steps += 1;
  leftover.time_ns += step.time_ns;
  double ranks = 0;
  for (size_t r = 0; r < mended.size(); ++r) ranks += step.work[r] != kAbsent && mended[r] == 0;
  leftover.most_ranks = std::max(leftover.most_ranks, ranks);
  std::optional<Fit> fit;
  if (any_samples(joiner, step)) fit.emplace(leftover, step, mended, joiner);

  std::vector<float> scratch;
  std::vector<int32_t> others;
  double worst = 0, sum = 0;
  int32_t late = -1;
  for (const JoinedSync& sync : step.syncs) {
    const SyncCost found = cost_of(sync.work, mended, scratch);
    if (found.late < 0) continue;
    const double cost = sync.weight * found.cost;
    leftover.syncs += 1;
    sum += cost;
    add(leftover.cost, cost);
    for (size_t r = 0; r < sync.work.size(); ++r)
      if (sync.work[r] != kAbsent && mended[r] == 0)
        add(leftover.deviation, std::fabs(sync.work[r] - found.median));
    if (fit && fit->known()) {
      leftover.fitted_cost_ns += cost;
      leftover.unexplained_cost_ns +=
          sync.weight * cost_of(fit->without(sync), mended, scratch).cost;
    }
    if (late < 0 || cost > worst) {
      worst = cost;
      late = found.late;
    }
  }
  leftover.cost_ns += sum;
  if (late < 0 || worst < kWorthExplaining * step.time_ns) return;
  const int32_t rank = run.ranks[static_cast<size_t>(late)].rank;
  add_late(leftover.late, rank, worst);
  for (size_t r = 0; r < mended.size(); ++r)
    if (step.work[r] != kAbsent && mended[r] == 0) others.push_back(static_cast<int32_t>(r));
  const auto phases = explain_late(joiner, late, others, step.step, worst);
  for (const PhaseExcess& phase : phases) leftover.phases[phase.phase] += phase.ns;
  add_spike(leftover.spikes,
            {step.step, rank, phases.empty() ? std::string("other") : phases.front().phase, worst});
}

double cost_of_top(const Leftover& leftover, double share) {
  double syncs = std::ceil(share * leftover.syncs), cost = 0;
  for (size_t bin = SizeHistogram::kBins; bin-- > 0 && syncs > 0;) {
    const double count = leftover.cost.count[bin];
    if (count <= 0) continue;
    const double taken = std::min(count, syncs);
    cost += leftover.cost.sum[bin] * taken / count;
    syncs -= taken;
  }
  return cost;
}

double syncs_holding(const Leftover& leftover, double share_of_cost) {
  double wanted = share_of_cost * leftover.cost_ns, syncs = 0;
  for (size_t bin = SizeHistogram::kBins; bin-- > 0 && wanted > 0;) {
    const double sum = leftover.cost.sum[bin];
    if (sum <= 0) continue;
    syncs += leftover.cost.count[bin] * std::min(1.0, wanted / sum);
    wanted -= sum;
  }
  return leftover.syncs > 0 ? syncs / leftover.syncs : 0;
}

double work_spread_ns(const Leftover& leftover) {
  const auto& count = leftover.deviation.count;
  double all = 0;
  for (const double one : count) all += one;
  double below = 0;
  for (size_t bin = 0; bin + 1 < SizeHistogram::kBins; ++bin) {
    if (count[bin] > 0 && below + count[bin] >= all / 2) {
      const double within = (all / 2 - below) / count[bin];
      const double mad = bin_begin(bin) + within * (bin_begin(bin + 1) - bin_begin(bin));
      const double ranks = std::max(2.0, leftover.most_ranks);
      return 1.4826 * mad * std::sqrt(ranks / (ranks - 1));  // the median moves with the few
    }
    below += count[bin];
  }
  return 0;
}

double expected_maximum(double ranks) {
  if (ranks < 2) return 0;
  // The integral of x over the density of the largest of n: x n phi(x) Phi(x)^(n-1).
  double sum = 0;
  constexpr double kStep = 0.01;
  for (double x = -8; x < 8; x += kStep)
    sum += kStep * x * ranks * std::exp(-x * x / 2) / std::sqrt(2 * M_PI) *
           std::pow(0.5 * std::erfc(-x / std::sqrt(2.0)), ranks - 1);
  return sum;
}

}  // namespace stepscope::engine
