#include "report/statistics.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace stepscope::report {
namespace {

constexpr int kMostPoints = 20;

class Collector {
 public:
  void operator()(const StepBlock& b) {
    const auto weight = static_cast<double>(b.count);
    count_ += weight;
    out_.count += b.count;
    quantiles_.add(b);
    for (size_t i = 0; i <= kTotal; ++i) means_.phase_ns[i] += b.mean_ns[i] * weight;
    for (const auto& [name, ns] : b.part_mean_ns) means_.part_ns[name] += ns * weight;
    for (const auto& [name, ns] : b.user_mean_ns) user(name) += ns * weight;
  }

  void operator()(const StepSample& s) {
    count_ += 1;
    ++out_.count;
    quantiles_.add(s);
    for (size_t i = 0; i < kPhaseCount; ++i)
      means_.phase_ns[i] += static_cast<double>(s.phase_ns[i]);
    means_.phase_ns[kTotal] += static_cast<double>(s.total_ns());
    add(Part::kLoss, s.parts.loss_ns);
    add(Part::kEpochStart, s.parts.epoch_start_ns);
    add(Part::kRecompute, s.parts.recompute_ns);
    add(Part::kBeforeForward, s.parts.other_before_forward_ns);
    add(Part::kAfterBackward, s.parts.other_after_backward_ns);
    add(Part::kAfterOptimizer, s.parts.other_after_optimizer_ns);
    add(Part::kBetweenSteps, s.parts.other_between_steps_ns);
    for (const auto& [name, ns] : s.user_phase_ns) user(name) += static_cast<double>(ns);
  }

  Steady take() {
    if (count_ > 0) {
      for (double& ns : means_.phase_ns) ns /= count_;
      for (auto* named : {&means_.user_ns, &means_.part_ns})
        for (auto& [name, ns] : *named) ns /= count_;
    }
    out_.means = std::move(means_);
    out_.median_ns = quantiles_.ns(0.5);
    out_.p95_ns = quantiles_.ns(0.95);
    out_.exact = quantiles_.exact();
    return std::move(out_);
  }

 private:
  enum class Part : size_t {
    kLoss,
    kEpochStart,
    kRecompute,
    kBeforeForward,
    kAfterBackward,
    kAfterOptimizer,
    kBetweenSteps
  };
  static constexpr std::array<const char*, 7> kPartNames = {"loss",
                                                            "epoch_start",
                                                            "recompute",
                                                            "other_before_forward",
                                                            "other_after_backward",
                                                            "other_after_optimizer",
                                                            "other_between_steps"};

  void add(Part part, int64_t ns) {  // the entry is looked for once, not in each step
    if (ns == 0) return;
    double*& entry = parts_[static_cast<size_t>(part)];
    if (entry == nullptr) entry = &means_.part_ns[kPartNames[static_cast<size_t>(part)]];
    *entry += static_cast<double>(ns);
  }

  double& user(const std::string& name) {
    const auto builtin = phase_from_name(name);
    return builtin ? means_.phase_ns[static_cast<size_t>(*builtin)] : means_.user_ns[name];
  }

  Steady out_;
  Means means_;
  double count_ = 0;
  Quantiles quantiles_;
  std::array<double*, 7> parts_{};  // into means_
};

}  // namespace

// Quantile function of one rollup: straight from minimum to median, then median + (max - median)
// v^k, with k such that the mean is that of the block: one spike in a thousand steps gives a large
// k and leaves the 95th percentile alone.
void Quantiles::spread(const StepBlock& b) {
  const auto min = static_cast<double>(b.min_ns[kTotal]),
             median = static_cast<double>(b.median_ns[kTotal]),
             max = static_cast<double>(b.max_ns[kTotal]);
  const double upper_mean = 2 * b.mean_ns[kTotal] - (min + median) / 2;
  const double k =
      upper_mean > median ? std::clamp((max - median) / (upper_mean - median) - 1, 1.0, 1e6) : 1e6;
  const int n = static_cast<int>(std::min<int64_t>(b.count, kMostPoints));
  for (int i = 0; i < n; ++i) {
    const double u = (i + 0.5) / n;
    const double ns =
        u <= 0.5 ? min + (median - min) * 2 * u : median + (max - median) * std::pow(2 * u - 1, k);
    points_.push_back({ns, static_cast<double>(b.count) / n});
  }
}

void Quantiles::add(const StepBlock& block) {
  sorted_ = false;
  total_ += static_cast<double>(block.count);
  exact_ = exact_ && block.count == 1;
  if (block.count == 1)
    points_.push_back({block.mean_ns[kTotal], 1});
  else
    spread(block);
}

void Quantiles::add(const StepSample& step) {
  sorted_ = false;
  total_ += 1;
  points_.push_back({static_cast<double>(step.total_ns()), 1});
}

double Quantiles::between_nearest(double q) const {
  const double at = q * static_cast<double>(points_.size() - 1);
  const auto below = static_cast<size_t>(at);
  const double low = points_[below].ns;
  const double high = points_[std::min(below + 1, points_.size() - 1)].ns;
  return low + (high - low) * (at - static_cast<double>(below));
}

double Quantiles::ns(double q) {
  if (points_.empty()) return 0;
  if (!sorted_)
    std::sort(points_.begin(), points_.end(),
              [](const Point& a, const Point& b) { return a.ns < b.ns; });
  sorted_ = true;
  if (exact_) return between_nearest(q);
  double passed = 0;
  for (const Point& p : points_) {
    passed += p.weight;
    if (passed >= q * total_) return p.ns;
  }
  return points_.back().ns;
}

Steady steady_of(const RankHistory& rank) {
  Collector collector;
  struct Use {
    Collector& to;
    void operator()(const StepBlock& block) const { to(block); }
    void operator()(const StepSample& step) const { to(step); }
  };
  rank.each_steady(RankHistory::Finest::kStep, Use{collector});
  return collector.take();
}

std::optional<double> mean_of(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

}  // namespace stepscope::report
