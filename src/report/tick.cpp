#include "report/tick.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

namespace stepscope::report {

std::optional<int64_t> newest_step(const RunHistory& run) {
  std::optional<int64_t> newest;
  for (const RankHistory& rank : run.ranks)
    if (!rank.raw.empty()) newest = std::max(newest.value_or(0), rank.raw.back().step);
  return newest;
}

std::string tick_json(const RunHistory& run, std::optional<int64_t>,
                      std::optional<double> age_s) {
  namespace json = boost::json;
  const auto newest = newest_step(run);
  json::object out{{"type", "tick"}, {"state", run.live ? "live" : "ended"}};
  out["step"] = newest ? json::value(*newest) : json::value(nullptr);
  out["age_s"] = age_s ? json::value(*age_s) : json::value(nullptr);
  out["duration_s"] = static_cast<double>(run.duration_ns) / 1e9;
  return json::serialize(out);
}

}  // namespace stepscope::report
