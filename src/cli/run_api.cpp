#include "cli/run_api.h"

#include <sys/stat.h>

#include <boost/json.hpp>
#include <utility>

#include "base/file.h"
#include "cli/card_text.h"
#include "cli/recover.h"
#include "cli/run_list.h"
#include "cli/segment_folder.h"
#include "engine/engine.h"
#include "serve/api.h"
#include "serve/client.h"

namespace stepscope::cli {
namespace {

namespace json = boost::json;

serve::Reply unavailable(const std::string& message, const std::string& hint) {
  return {503, "application/json",
          json::serialize(json::object{{"error", message}, {"hint", hint}}) + "\n"};
}

// What changes when somebody writes the run's files.
std::pair<int64_t, int64_t> stamp_of(const std::string& run_folder) {
  struct stat st;
  if (::stat((run_folder + "/run.db").c_str(), &st) != 0) return {0, 0};
  return {int64_t{st.st_mtim.tv_sec} * 1'000'000'000 + st.st_mtim.tv_nsec, st.st_size};
}

}  // namespace

struct RunApi::Stored {
  std::pair<int64_t, int64_t> stamp;
  RunHistory run;
  report::Summary summary;
};

RunApi::RunApi(std::string run_folder) : run_folder_(std::move(run_folder)) {}
RunApi::~RunApi() = default;

serve::Reply RunApi::answer(const serve::Request& request) {
  const auto segments = segment_folder_of(run_folder_);
  if (segments && agent_alive(*segments)) {
    auto reply = serve::exchange(*segments + "/api.sock", request, kAgentWait);
    if (reply) return std::move(*reply);
    return unavailable("the agent of this run does not answer", "");
  }
  if (segments && any_process_alive(*segments))
    return unavailable("the agent of this run is gone; the training goes on",
                       "stepscope show " + run_folder_);
  if (segments) (void)finish_segment_folder(*segments, nullptr);
  return stored(request);
}

serve::Reply RunApi::stored(const serve::Request& request) {
  const auto stamp = stamp_of(run_folder_);
  if (!stored_ || stored_->stamp != stamp) {
    auto run = read_history(run_folder_);
    if (!run) return unavailable(run.error().message, run.error().hint);
    report::Summary summary = report::summarize(*run, engine::diagnose(*run));
    stored_ = std::make_unique<Stored>(Stored{stamp, std::move(*run), std::move(summary)});
  }
  const report::Summary& summary = stored_->summary;
  const serve::Api api{
      .health =
          [&] {
            return json::serialize(json::object{{"schema", 1},
                                                {"state", summary.live ? "unfinished" : "ended"},
                                                {"id", summary.id},
                                                {"name", summary.name},
                                                {"folder", run_folder_},
                                                {"ranks", json::array()}}) +
                   "\n";
          },
      .summary =
          [&](bool pretty) {
            auto text = summary_of(run_folder_, pretty);  // of a hub's run: as the hub wrote it
            return text ? std::move(*text) : report::to_json(summary, pretty) + "\n";
          },
      .card = [&](const report::CardStyle& style) { return report::card(summary, style); },
      .status = [&](const report::CardStyle& style) { return report::status(summary, style); },
      .control = [](serve::ControlWord) {}};
  return serve::route(api, request);
}

}  // namespace stepscope::cli
