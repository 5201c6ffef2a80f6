#include "report/lateness.h"

#include <algorithm>
#include <cstddef>

#include "engine/joined_steps.h"
#include "engine/measured.h"

namespace stepscope::report {
namespace {

constexpr float kUnknown = -1;

}  // namespace

float fastest(std::vector<float>& work) {
  const size_t quarter = std::max<size_t>(1, work.size() / 4);
  const auto at = [&](size_t i) { return work.begin() + static_cast<std::ptrdiff_t>(i); };
  const size_t middle = quarter / 2;
  std::nth_element(work.begin(), at(middle), work.end());
  if (quarter % 2 != 0) return work[middle];
  return (*std::max_element(work.begin(), at(middle)) + work[middle]) / 2;
}

Lateness::Lateness(const RunHistory& run, const StepRange& range) : ranks_(run.ranks.size()) {
  if (ranks_ < 2) return;
  knows_own_ = !engine::why_not_measured(run, Phase::kSync);
  if (range.to < range.from) return;
  engine::StepJoiner joiner(run, range.from, engine::StepJoiner::Want::kWork);
  engine::JoinedStep step;
  std::vector<float> known;
  while (joiner.next(step) && step.step <= range.to) {
    if (late_ns_.empty()) first_ = step.step;
    const auto begin = static_cast<size_t>(step.step - first_) * ranks_;
    late_ns_.resize(begin + ranks_, kUnknown);
    if (step.syncs.empty()) continue;
    known.clear();
    for (const float work : step.work)
      if (work != engine::kAbsent) known.push_back(work);
    if (known.size() < 2) continue;
    const float fast = fastest(known);
    for (size_t i = 0; i < ranks_; ++i)
      if (step.work[i] != engine::kAbsent)
        late_ns_[begin + i] = std::max(0.0F, step.work[i] - fast);
  }
}

std::optional<double> Lateness::ns(size_t position, int64_t step) const {
  if (step < first_) return std::nullopt;
  const size_t at = static_cast<size_t>(step - first_) * ranks_ + position;
  if (at >= late_ns_.size() || late_ns_[at] < 0) return std::nullopt;
  return late_ns_[at];
}

}  // namespace stepscope::report
