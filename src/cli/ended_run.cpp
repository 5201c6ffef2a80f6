#include "cli/ended_run.h"

#include <sys/stat.h>

#include <boost/json.hpp>
#include <utility>

#include "base/version.h"
#include "cli/card_text.h"
#include "cli/run_list.h"
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
  auto summary = stored_summary(folder);
  if (!summary) return summary.error();
  out->summary_ = std::move(*summary);
  return std::shared_ptr<const EndedRun>(std::move(out));
}

Result<std::shared_ptr<const RunHistory>> EndedRun::history() const {
  const std::lock_guard lock(reading_);
  if (history_) return history_;
  auto history = read_history(folder_);
  if (!history) return history.error();
  if (stamp_of(folder_) != stamp_) return Error{"the run's files were written since", "ask again"};
  history->live = false;
  history_ = std::make_shared<const RunHistory>(std::move(*history));
  return history_;
}

std::string EndedRun::health_json() const {
  json::array ranks;
  for (const report::RankRow& row : summary_.ranks)
    ranks.push_back({{"rank", row.rank},
                     {"pid", nullptr},
                     {"alive", false},
                     {"phase", nullptr},
                     {"step", nullptr},
                     {"since_s", nullptr}});
  return line(json::object{{"schema", 1},
                           {"state", "ended"},
                           {"id", summary_.id},
                           {"name", summary_.name},
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
          [&](report::JsonForm form, bool /*fresh*/) {
            auto text = summary_of(folder_, form);  // of a hub's run: as the hub wrote it
            return text ? std::move(*text) : report::to_json(summary_, form) + "\n";
          },
      .card = [&](const report::CardStyle& style) { return report::card(summary_, style); },
      .status = [&](const report::CardStyle& style) { return report::status(summary_, style); },
      .control = [](serve::ControlWord) {},
      .view = [&](const report::ViewQuery& query) -> Result<std::string> {
        const auto run = history();
        if (!run) return run.error();
        return report::view(**run, summary_.findings, query);
      },
      .tick = [&](std::optional<int64_t> since) -> std::string {
        const auto run = history();
        return report::tick_json(run ? **run : RunHistory{}, since, std::nullopt) + "\n";
      }};
  return serve::route(api, request);
}

}  // namespace stepscope::cli
