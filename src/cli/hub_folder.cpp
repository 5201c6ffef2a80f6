#include "cli/hub_folder.h"

#include <boost/json.hpp>

#include "base/file.h"
#include "base/text.h"
#include "hub/token.h"

namespace stepscope::cli {
namespace {

constexpr const char* kOfHub = "/run.db.hub";
constexpr const char* kFromHub = "/summary.json.hub";
constexpr size_t kMaxMark = 8192;

// The hub left out every path: these are this node's.
std::string with_paths(const std::string& summary_json, const std::string& folder) {
  namespace json = boost::json;
  json::error_code error;
  json::value summary = json::parse(summary_json, error);
  if (error || !summary.is_object()) return "";
  json::object& object = summary.get_object();
  if (json::value* run = object.if_contains("run"); run != nullptr && run->is_object())
    run->get_object()["folder"] = folder;
  object["files"] = json::object{{"summary_json", folder + "/summary.json"},
                                 {"summary_txt", folder + "/summary.txt"},
                                 {"run_db", folder + "/run.db"}};
  return json::serialize(summary);
}

}  // namespace

Status mark_hub_folder(const std::string& folder, const std::string& run_id) {
  return write_file(folder + kOfHub, format_key_values({{"run_id", run_id}}));
}

std::optional<std::string> hub_run_id(const std::string& folder) {
  const auto content = read_file(folder + kOfHub, kMaxMark);
  if (!content) return std::nullopt;
  const auto values = parse_key_values(*content);
  const auto id = values.find("run_id");
  return id == values.end() ? std::nullopt : std::optional(id->second);
}

std::string hub_meeting_name(const std::string& run_folder) {
  return "hub-" + hub::hex(hub::sha256(run_folder)).substr(0, 24);
}

Status write_summary_of_hub(const std::string& folder, const hub::pb::JobSummary& summary) {
  const std::string json = with_paths(summary.summary_json(), folder);
  if (!json.empty())
    if (const Status written = write_file(folder + "/summary.json", json + "\n", 0644, true);
        !written)
      return written;
  const std::string mark = format_key_values(
      {{"folder", printable(summary.folder())}, {"complete", summary.complete() ? "1" : "0"}});
  if (const Status marked = write_file(folder + kFromHub, mark); !marked) return marked;
  return write_file(folder + "/summary.txt", summary.card(), 0644, true);
}

std::string told_folder_of_hub(const std::string& folder) {
  const auto content = read_file(folder + kFromHub, kMaxMark);
  return content ? parse_key_values(*content)["folder"] : "";
}

bool has_summary_of_hub(const std::string& folder) { return exists(folder + kFromHub); }

}  // namespace stepscope::cli
