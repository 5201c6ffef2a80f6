#include "cli/stored_run.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/recover.h"
#include "cli/run_folder.h"
#include "cli/run_list.h"

namespace stepscope::cli {
namespace {

constexpr int64_t kFinishNs = 5'000'000'000;

// A file of a run stands for its folder.
std::string folder_of_file(const std::string& run) {
  for (const std::string name : {"run.db", "summary.json"}) {
    if (run == name) return ".";
    if (run.ends_with("/" + name)) return run.substr(0, run.size() - name.size() - 1);
  }
  return run;
}

}  // namespace

Result<StoredRun> find_stored_run(const std::string& run) {
  const int64_t deadline = monotonic_ns() + kFinishNs;
  (void)finish_dead_runs([&] { return monotonic_ns() < deadline; });
  const auto folder = resolve_run(folder_of_file(run), absolute_path("."), current_environment());
  if (!folder) return folder.error();
  const std::string of_hub = *folder + "/hub";
  const std::string from = holds_run(of_hub) ? of_hub : *folder;
  if (!exists(from + "/run.db"))
    return Error{"there is no run.db in " + shell_quote(printable(from, 200)) +
                     ": summary.json alone does not hold the steps",
                 "keep the whole run folder: summary.json and run.db"};
  const bool live = is_live(from);
  if (!live) (void)finish_run_folder(from);  // what it cannot write is not needed here
  return StoredRun{from, live};
}

Result<RunHistory> read_stored_run(const StoredRun& run) {
  auto history = read_history(run.folder);
  if (history) history->live = run.live;
  return history;
}

Result<RunHistory> stored_run(const std::string& run) {
  const auto found = find_stored_run(run);
  if (!found) return found.error();
  return read_stored_run(*found);
}

}  // namespace stepscope::cli
