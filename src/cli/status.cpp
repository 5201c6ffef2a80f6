// stepscope status: the verdict now, what was found and when, who does what. Changes nothing.
#include <poll.h>
#include <unistd.h>

#include <memory>

#include "base/clock.h"
#include "base/file.h"
#include "cli/card_text.h"
#include "cli/commands.h"
#include "cli/run_list.h"
#include "cli/say.h"

namespace stepscope::cli {
namespace {

constexpr int64_t kIntervalNs = 1'000'000'000;

struct StatusOptions {
  std::string run;
  bool json = false, watch = false, exclude_list = false;
};

int exclude_list(const std::string& folder) {
  const auto summary = stored_summary(folder);
  if (!summary) return wrong_use(summary.error());
  for (const std::string& node : report::chronically_late_nodes(*summary)) print(node + "\n");
  return kFine;
}

Result<std::string> text_of(const std::string& folder, const StatusOptions& options) {
  if (options.json) return summary_of(folder, !options.watch);
  return status_of(folder, 1);
}

int status(const StatusOptions& options) {
  const auto folder = resolve_run(options.run, absolute_path("."), current_environment());
  if (!folder) return wrong_use(folder.error());
  if (options.exclude_list) return exclude_list(*folder);
  const bool on_screen = options.watch && !options.json && ::isatty(1) != 0;
  const std::string clear = on_screen ? "\x1b[H\x1b[2J" : "";
  for (int64_t due = monotonic_ns();; due += kIntervalNs) {
    // Before asking: what a run that ended meanwhile prints is final.
    const bool goes_on = options.watch && is_live(*folder);
    const auto text = text_of(*folder, options);
    if (!text) return wrong_use(text.error());
    print(clear + *text);
    if (!goes_on) return kFine;
    const int64_t left_ms = (due + kIntervalNs - monotonic_ns()) / 1'000'000;
    if (left_ms > 0) ::poll(nullptr, 0, static_cast<int>(left_ms));
  }
}

}  // namespace

void add_status(CLI::App& app, Action& action) {
  const auto options = std::make_shared<StatusOptions>();
  CLI::App* status_app =
      app.add_subcommand("status", "Print the verdict now, who is late, who is stuck");
  status_app->footer(
      "Asks the agent of a run that is going on; says the same of one that has ended.");
  status_app->add_option("RUN", options->run,
                         "Folder, name or id of the run (default: the newest)");
  CLI::Option* json =
      status_app->add_flag("--json", options->json, "Print summary.json of this moment");
  CLI::Option* watch = status_app->add_flag("--watch", options->watch,
                                            "Every second, until the run ends; with --json one "
                                            "object a line");
  status_app
      ->add_flag("--exclude-list", options->exclude_list,
                 "Only the hosts that were late for at least half of the run, one a line")
      ->excludes(json)
      ->excludes(watch);
  status_app->callback([&action, options] { action = [options] { return status(*options); }; });
}

}  // namespace stepscope::cli
