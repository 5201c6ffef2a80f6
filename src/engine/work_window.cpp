#include "engine/work_window.h"

#include <algorithm>
#include <cmath>

#include "engine/median.h"

namespace stepscope::engine {
namespace {

constexpr size_t kMostOfFastest = 255;
constexpr size_t kLeastAfterChange = 3;

}  // namespace

void WorkWindow::pop() {
  first_ = (first_ + 1) % kHorizon;
  --size_;
}

void WorkWindow::push(JoinedStep& step) {
  const size_t slot = (first_ + size_) % kHorizon;
  if (slot >= steps_.size()) steps_.resize(slot + 1);
  std::swap(steps_[slot], step);
  for (size_t r = 0; r < ranks_; ++r) work_[r * kHorizon + slot] = steps_[slot].work[r];
  ++size_;
}

WindowMedians medians(const WorkWindow& window, size_t steps) {
  WindowMedians out;
  out.steps = steps;
  out.work.assign(window.ranks(), kAbsent);
  const size_t from = window.size() - steps;
  std::vector<float> values;
  for (size_t i = from; i < window.size(); ++i)
    values.push_back(static_cast<float>(window.step(i).time_ns));
  out.time_ns = median_of(values);
  for (size_t r = 0; r < window.ranks(); ++r) {
    values.clear();
    for (size_t i = from; i < window.size(); ++i)
      if (const float work = window.work(r, i); work != kAbsent) values.push_back(work);
    if (4 * values.size() < 3 * steps) continue;
    out.work[r] = static_cast<float>(median_of(values));
    out.fastest.push_back(static_cast<int32_t>(r));
  }
  out.ranks = static_cast<int32_t>(out.fastest.size());
  const auto n = std::max<size_t>(1, out.fastest.size() / 4);
  if (out.fastest.size() > n) {
    std::nth_element(out.fastest.begin(), out.fastest.begin() + static_cast<std::ptrdiff_t>(n - 1),
                     out.fastest.end(), [&](int32_t a, int32_t b) {
                       return std::pair(out.work[static_cast<size_t>(a)], a) <
                              std::pair(out.work[static_cast<size_t>(b)], b);
                     });
    out.fastest.resize(n);
  }
  std::sort(out.fastest.begin(), out.fastest.end());
  values.clear();
  for (const int32_t r : out.fastest) values.push_back(out.work[static_cast<size_t>(r)]);
  out.fastest_ns = median_of(values);
  return out;
}

double median_work(const std::vector<float>& work, std::span<const int32_t> ranks) {
  const size_t stride = ranks.size() / kMostOfFastest + 1;
  std::vector<float> values;
  values.reserve(ranks.size() / stride + 1);
  for (size_t i = 0; i < ranks.size(); i += stride)
    if (const float one = work[static_cast<size_t>(ranks[i])]; one != kAbsent)
      values.push_back(one);
  return values.empty() ? kAbsent : median_of(values);
}

int64_t wins_needed(int64_t throws, double p) {
  double term = std::exp2(-static_cast<double>(throws)), tail = 0;
  for (int64_t k = throws; k >= 0; --k) {
    tail += term;
    if (tail >= p) return k + 1;
    term *= static_cast<double>(k) / static_cast<double>(throws - k + 1);
  }
  return 0;
}

bool is_above(const WorkWindow& window, size_t rank, std::span<const double> reference, double p) {
  int64_t throws = 0, wins = 0;
  const size_t from = window.size() - reference.size();
  for (size_t i = 0; i < reference.size(); ++i) {
    const double work = window.work(rank, from + i);
    if (work == kAbsent || reference[i] == kAbsent || work == reference[i]) continue;
    ++throws;
    wins += work > reference[i] ? 1 : 0;
  }
  return wins >= wins_needed(throws, p);
}

size_t change_up(std::span<const double> values, double height) {
  // Likeliest where the sum of what lies above half of the height is least before it.
  size_t best = 0;
  double sum = 0, least = 0;
  for (size_t k = 1; k + kLeastAfterChange <= values.size(); ++k) {
    sum += std::clamp(values[k - 1], -height, 2 * height) - height / 2;
    if (sum >= least) continue;
    least = sum;
    best = k;
  }
  return best;
}

}  // namespace stepscope::engine
