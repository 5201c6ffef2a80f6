#include <algorithm>
#include <boost/json.hpp>
#include <map>

#include "report/report.h"

namespace stepscope::report {
namespace {

namespace json = boost::json;

constexpr double kChronic = 0.5;  // of the run's steps

int64_t number(const json::object& from, const char* key, int64_t otherwise) {
  const json::value* value = from.if_contains(key);
  json::error_code error;
  if (value == nullptr || !value->is_number()) return otherwise;
  const auto out = value->to_number<int64_t>(error);
  return error ? otherwise : out;
}

std::string text(const json::object& from, const char* key) {
  const json::value* value = from.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
}

const json::object* object(const json::object& from, const char* key) {
  const json::value* value = from.if_contains(key);
  return value == nullptr ? nullptr : value->if_object();
}

template <typename Use>
void each(const json::object& from, const char* key, Use use) {
  const json::value* value = from.if_contains(key);
  const json::array* list = value == nullptr ? nullptr : value->if_array();
  if (list == nullptr) return;
  for (const json::value& entry : *list)
    if (const json::object* one = entry.if_object()) use(*one);
}

}  // namespace

Result<LateNodes> chronically_late_nodes(const std::string& summary_json) {
  json::error_code error;
  const json::value parsed = json::parse(summary_json, error);
  const json::object* summary = error ? nullptr : parsed.if_object();
  const json::object* run = summary == nullptr ? nullptr : object(*summary, "run");
  const json::object* steps = summary == nullptr ? nullptr : object(*summary, "steps");
  if (run == nullptr || steps == nullptr) return Error{"that is no summary of a run", ""};
  LateNodes out;
  out.ranks = number(*run, "ranks", 0);
  out.world_size = number(*run, "world_size", 0);
  std::map<int64_t, std::string> node_of;
  each(*summary, "ranks",
       [&](const json::object& rank) { node_of[number(rank, "rank", -1)] = text(rank, "node"); });
  std::map<std::string, int64_t> late;  // ranks of a node that are late together are late once
  each(*summary, "findings", [&](const json::object& f) {
    if (text(f, "code") != "STRAGGLER" || text(f, "pattern") != "persistent") return;
    std::string node = text(f, "node");
    if (node.empty()) node = node_of[number(f, "rank", -1)];
    const int64_t steps_late = number(f, "last_step", 0) - number(f, "first_step", 0) + 1;
    if (!node.empty()) late[node] = std::max(late[node], steps_late);
  });
  const auto least = kChronic * static_cast<double>(number(*steps, "count", 0));
  for (const auto& [node, steps_late] : late)
    if (static_cast<double>(steps_late) >= least) out.nodes.push_back(node);
  return out;
}

}  // namespace stepscope::report
