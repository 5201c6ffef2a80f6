#include "cli/ended_run.h"

#include <sys/stat.h>

#include <boost/json.hpp>
#include <utility>

#include "base/version.h"
#include "cli/card_text.h"
#include "cli/run_list.h"
#include "engine/engine.h"
#include "report/tick.h"
#include "report/views.h"

namespace stepscope::cli {
namespace json = boost::json;
namespace {

std::string line(const json::value& value) { return json::serialize(value) + "\n"; }

}  // namespace

std::string EndedRun::stamp_of(const std::string& folder) {
  std::string out;
  for (const char* name : {"/run.db", "/run.db-wal", "/summary.json", "/summary.json.hub"}) {
    struct stat st;
    if (::stat((folder + name).c_str(), &st) != 0) continue;
    out += std::to_string(st.st_ino) + ":" + std::to_string(st.st_size) + ":" +
           std::to_string(st.st_mtim.tv_sec) + "." + std::to_string(st.st_mtim.tv_nsec) + " ";
  }
  return out;
}

Result<std::shared_ptr<const EndedRun>> EndedRun::read(const std::string& folder) {
  auto out = std::make_shared<EndedRun>();
  out->stamp_ = stamp_of(folder);
  out->folder_ = folder;
  auto history = read_history(folder);
  if (!history) return history.error();
  out->run_ = std::move(*history);
  out->run_.live = false;
  out->findings_ = engine::diagnose(out->run_);
  out->summary_ = report::summarize(out->run_, out->findings_);
  return std::shared_ptr<const EndedRun>(std::move(out));
}

std::string EndedRun::health_json() const {
  json::array ranks;
  for (const RankHistory& rank : run_.ranks)
    ranks.push_back({{"rank", rank.rank},
                     {"pid", rank.pid},
                     {"alive", false},
                     {"phase", nullptr},
                     {"step", nullptr},
                     {"since_s", nullptr}});
  return line(json::object{{"schema", 1},
                           {"state", "ended"},
                           {"id", run_.id},
                           {"name", run_.name},
                           {"folder", folder_},
                           {"version", kVersion},
                           {"storing", false},
                           {"ranks", std::move(ranks)}});
}

serve::Reply EndedRun::answer(const serve::Request& request) const {
  if (request.method == "POST")
    return serve::error_reply(405, "the run has ended: nobody is there to be told", "");
  const serve::Api api{
      .health = [&] { return health_json(); },
      .summary =
          [&](bool pretty, bool /*fresh*/) {
            auto text = summary_of(folder_, pretty);  // of a hub's run: as the hub wrote it
            return text ? std::move(*text) : report::to_json(summary_, pretty) + "\n";
          },
      .card = [&](const report::CardStyle& style) { return report::card(summary_, style); },
      .status = [&](const report::CardStyle& style) { return report::status(summary_, style); },
      .control = [](serve::ControlWord) {},
      .view = [&](const report::ViewQuery& query) { return report::view(run_, findings_, query); },
      .tick =
          [&](std::optional<int64_t> since) {
            return report::tick_json(run_, since, std::nullopt) + "\n";
          }};
  return serve::route(api, request);
}

}  // namespace stepscope::cli
