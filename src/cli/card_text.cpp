#include "cli/card_text.h"

#include <chrono>
#include <optional>

#include "base/file.h"
#include "cli/hub_folder.h"
#include "cli/run_list.h"
#include "cli/segment_folder.h"
#include "engine/engine.h"
#include "report/summary_bytes.h"
#include "serve/client.h"
#include "store/store.h"

namespace stepscope::cli {
namespace {

constexpr std::chrono::milliseconds kAgentWait{3000};

std::optional<std::string> ask_agent(const std::string& run_folder, const std::string& target) {
  const auto folder = segment_folder_of(run_folder);
  if (!folder || !agent_alive(*folder)) return std::nullopt;
  auto body = serve::ask(*folder + "/api.sock", {"GET", target, ""}, kAgentWait);
  return body ? std::optional(std::move(*body)) : std::nullopt;
}

// A run that was just founded: its agent is not yet there.
std::optional<RunHistory> begun(const std::string& run_folder) {
  const auto segments = segment_folder_of(run_folder);
  if (!segments) return std::nullopt;
  const auto info = read_run_info(*segments);
  if (!info) return std::nullopt;
  RunHistory run;
  run.name = info->name;
  run.id = info->id;
  run.folder = info->folder;
  run.command = info->command;
  run.started_wall_ns = info->started_wall_ns;
  run.live = true;
  return run;
}

}  // namespace

std::string target_of(const std::string& path, const report::CardStyle& style) {
  return path + "?width=" + std::to_string(style.width) + (style.colour ? "&colour" : "") +
         (style.unicode ? "" : "&ascii");
}

Result<report::Summary> stored_summary(const std::string& run_folder) {
  if (const auto kept = store::Store::summary(run_folder))
    if (auto summary = report::summary_from_bytes(*kept); summary && !summary->id.empty()) {
      report::place(*summary, run_folder);  // the folder may have been moved
      return std::move(*summary);
    }
  auto history = read_history(run_folder);
  if (!history)
    if (auto run = begun(run_folder)) history = std::move(*run);
  if (!history) return history.error();
  return report::summarize(*history, engine::diagnose(*history));
}

Result<std::string> status_of(const std::string& run_folder, int fd) {
  const report::CardStyle style = report::style_for(fd);
  if (auto live = ask_agent(run_folder, target_of("/v1/status", style))) return std::move(*live);
  if (has_summary_of_hub(run_folder))  // run.db is of this node's ranks alone
    if (auto card = read_file(run_folder + "/summary.txt"); card && !card->empty())
      return std::move(*card);
  const auto summary = stored_summary(run_folder);
  if (!summary) return summary.error();
  return report::status(*summary, style);
}

Result<CardText> card_of(const std::string& run_folder, int fd) {
  const report::CardStyle style = report::style_for(fd);
  if (auto card = ask_agent(run_folder, target_of("/v1/card", style)))
    return CardText{std::move(*card), ""};
  if (has_summary_of_hub(run_folder))  // run.db is of this node's ranks alone
    if (auto written = read_file(run_folder + "/summary.txt"); written && !written->empty())
      return CardText{std::move(*written), ""};
  const auto summary = stored_summary(run_folder);
  if (summary) return CardText{report::card(*summary, style), ""};
  auto written = read_file(run_folder + "/summary.txt");
  if (written && !written->empty())
    return CardText{std::move(*written),
                    summary.error().message + ": this is the card as it was written"};
  return summary.error();
}

Result<std::string> summary_of(const std::string& run_folder, report::JsonForm form) {
  const bool pretty = form == report::JsonForm::kPretty;
  const char* target = pretty                               ? "/v1/summary"
                       : form == report::JsonForm::kCompact ? "/v1/summary?compact"
                                                            : "/v1/summary?brief";
  if (auto live = ask_agent(run_folder, target)) return std::move(*live);
  auto written = read_file(run_folder + "/summary.json");
  const auto unfinished = store::Store::is_live(run_folder);
  const bool final = written && (!unfinished || !*unfinished);
  // What a hub wrote is on one line already, and of more ranks than run.db.
  if (final && (pretty || has_summary_of_hub(run_folder))) return std::move(*written);
  const auto summary = stored_summary(run_folder);
  if (summary) return report::to_json(*summary, form) + "\n";
  if (final) return std::move(*written);
  return summary.error();
}

}  // namespace stepscope::cli
