#include "engine/what_if.h"

#include <algorithm>

#include "engine/work_window.h"

namespace stepscope::engine {

Savings what_if(const JoinedStep& step, const std::vector<int32_t>& owner, size_t owners,
                std::span<const int32_t> fastest) {
  Savings out;
  out.alone.assign(owners, 0);
  std::vector<double> most(owners);
  for (const JoinedSync& sync : step.syncs) {
    std::fill(most.begin(), most.end(), 0);
    double others = 0;
    for (size_t r = 0; r < owner.size(); ++r) {
      double& longest = owner[r] < 0 ? others : most[static_cast<size_t>(owner[r])];
      longest = std::max<double>(longest, sync.work[r]);
    }
    const double quick = std::max(0.0, median_work(sync.work, fastest));
    // The longest of the owners and the next: without one of them the next counts.
    double first = 0, second = 0;
    for (const double longest : most) {
      second = std::max(second, std::min(first, longest));
      first = std::max(first, longest);
    }
    const double now = std::max(others, first);
    for (size_t e = 0; e < owners; ++e) {
      const double rest = std::max({others, most[e] == first ? second : first, quick});
      out.alone[e] += sync.weight * std::clamp(now - rest, 0.0, sync.time_ns);
    }
    out.all += sync.weight * std::clamp(now - std::max(others, quick), 0.0, sync.time_ns);
  }
  return out;
}

}  // namespace stepscope::engine
