#include "engine/slow_set.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace stepscope::engine {
namespace {

constexpr std::array<size_t, 3> kLongWindows = {32, 64, 100};
constexpr size_t kMargin = 4;
constexpr double kLikelyP = 0.05;

// What a slow rank's work must exceed, a value a step.
std::vector<double> limit_by_step(const WorkWindow& window, const WindowMedians& medians,
                                  double margin) {
  std::vector<double> out;
  for (size_t i = window.size() - medians.steps; i < window.size(); ++i) {
    const double fastest = median_work(window.step(i).work, medians.fastest);
    out.push_back(fastest == kAbsent ? kAbsent : fastest + margin * medians.time_ns);
  }
  return out;
}

}  // namespace

size_t shortest_window(const Settings& settings, int32_t ranks) {
  const double throws = std::ceil(std::log2(4.0 * std::max(2, ranks) / settings.straggler_p));
  return std::clamp<size_t>(static_cast<size_t>(std::max(0.0, throws)) + kMargin, 8,
                            kLongWindows.back());
}

SlowSet find_slow(const WorkWindow& window, const Settings& settings,
                  const std::vector<int32_t>& known) {
  SlowSet out;
  const size_t w0 = shortest_window(settings, window.step(window.size() - 1).ranks);
  out.shortest = medians(window, w0);
  std::vector<int32_t> perhaps;
  for (size_t r = 0; r < window.ranks(); ++r)
    if (known[r] < 0 && out.shortest.delta(r) >= settings.straggler_delta)
      perhaps.push_back(static_cast<int32_t>(r));
  if (perhaps.empty()) return out;
  const double p = settings.straggler_p / (4.0 * std::max(1, out.shortest.ranks));
  const double margin = settings.straggler_margin;
  const std::vector<double> short_reference = limit_by_step(window, out.shortest, margin);
  std::vector<int32_t> left;
  for (const int32_t r : perhaps) {
    const auto rank = static_cast<size_t>(r);
    (is_above(window, rank, short_reference, p) ? out.firm : left).push_back(r);
  }
  for (const size_t steps : kLongWindows) {
    if (left.empty() || steps <= w0 || window.size() < steps) continue;
    const WindowMedians longer = medians(window, steps);
    const std::vector<double> reference = limit_by_step(window, longer, margin);
    std::erase_if(left, [&](int32_t r) {
      const auto rank = static_cast<size_t>(r);
      const double delta = longer.delta(rank);
      if (delta < settings.straggler_delta || out.shortest.delta(rank) < delta / 2 ||
          !is_above(window, rank, reference, p))
        return false;
      out.firm.push_back(r);
      return true;
    });
  }
  if (out.firm.empty()) return out;
  double most = 0;
  for (const int32_t r : out.firm)
    most = std::max(most, out.shortest.delta(static_cast<size_t>(r)));
  for (const int32_t r : left)
    if (out.shortest.delta(static_cast<size_t>(r)) >= most / 2 &&
        is_above(window, static_cast<size_t>(r), short_reference, kLikelyP))
      out.likely.push_back(r);
  std::sort(out.firm.begin(), out.firm.end());
  return out;
}

}  // namespace stepscope::engine
