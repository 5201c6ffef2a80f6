#include "engine/identify_stragglers.h"

#include <algorithm>
#include <cmath>

#include "engine/median.h"

namespace stepscope::engine {
namespace {

constexpr const char* kTimesHint = "give each rank one time, or a list of times, of 0 or more";

Status check(const StragglerOptions& options) {
  if (options.method != "mean" && options.method != "median")
    return Error{"method \"" + options.method + "\" is not known", "use \"mean\" or \"median\""};
  if (!std::isfinite(options.threshold_multiplier) || options.threshold_multiplier <= 0)
    return Error{
        "threshold_multiplier " + std::to_string(options.threshold_multiplier) + " is not above 0",
        "2.0 names ranks that take more than twice as long"};
  if (options.window && *options.window < 1)
    return Error{"window " + std::to_string(*options.window) + " is under 1",
                 "leave it out to use every value"};
  return ok();
}

Status check_time(int64_t rank, double time) {
  if (std::isfinite(time) && time >= 0) return ok();
  return Error{"rank " + std::to_string(rank) + ": " + std::to_string(time) + " is not a time",
               kTimesHint};
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

// Median of all but one of them, which has this value.
double median_without(const std::vector<double>& sorted, double value) {
  const auto left_out =
      static_cast<size_t>(std::lower_bound(sorted.begin(), sorted.end(), value) - sorted.begin());
  const auto other = [&](size_t i) { return sorted[i < left_out ? i : i + 1]; };
  const size_t others = sorted.size() - 1;
  return others % 2 == 1 ? other(others / 2) : (other(others / 2 - 1) + other(others / 2)) / 2;
}

}  // namespace

Result<std::vector<int64_t>> identify_stragglers(const std::map<int64_t, double>& batch_times,
                                                 const StragglerOptions& options) {
  if (const Status checked = check(options); !checked) return checked.error();
  std::vector<int64_t> ranks;
  std::vector<double> times;
  for (const auto& [rank, time] : batch_times) {
    if (const Status checked = check_time(rank, time); !checked) return checked.error();
    ranks.push_back(rank);
    times.push_back(time);
  }
  std::vector<int64_t> slow;
  const bool by_mean = options.method == "mean";
  if (times.empty() || (!by_mean && times.size() < 2)) return slow;  // no others
  const double mean_of_all = mean(times);
  std::vector<double> sorted = times;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < times.size(); ++i) {
    const double usual = by_mean ? mean_of_all : median_without(sorted, times[i]);
    if (times[i] > options.threshold_multiplier * usual) slow.push_back(ranks[i]);
  }
  return slow;
}

Result<std::vector<int64_t>> identify_stragglers(
    const std::map<int64_t, std::vector<double>>& batch_times, const StragglerOptions& options) {
  if (const Status checked = check(options); !checked) return checked.error();
  std::map<int64_t, double> newest;
  for (const auto& [rank, series] : batch_times) {
    if (series.empty()) return Error{"rank " + std::to_string(rank) + " has no times", kTimesHint};
    for (const double time : series)
      if (const Status checked = check_time(rank, time); !checked) return checked.error();
    const size_t count = options.window && static_cast<size_t>(*options.window) < series.size()
                             ? static_cast<size_t>(*options.window)
                             : series.size();
    const std::vector<double> last(series.end() - static_cast<std::ptrdiff_t>(count), series.end());
    newest.emplace(rank, options.method == "mean" ? mean(last) : median(last));
  }
  return identify_stragglers(newest, options);
}

}  // namespace stepscope::engine
