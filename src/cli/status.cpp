// stepscope status: the verdict now, what was found and when, who does what. Changes nothing.
#include <poll.h>
#include <unistd.h>

#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/file.h"
#include "cli/card_text.h"
#include "cli/commands.h"
#include "cli/run_list.h"
#include "cli/say.h"
#include "cli/served_url.h"

namespace stepscope::cli {
namespace {

constexpr int64_t kIntervalNs = 1'000'000'000;

struct StatusOptions {
  std::string run;
  UrlFlags url;
  bool json = false, watch = false, exclude_list = false;
};

int exclude_list(const std::string& folder) {
  const auto summary = stored_summary(folder);
  if (!summary) return wrong_use(summary.error());
  for (const std::string& node : report::chronically_late_nodes(*summary)) print(node + "\n");
  return kFine;
}

// Where what is printed comes from.
struct Source {
  std::function<Result<bool>()> is_live;
  std::function<Result<std::string>()> text;
};

Source of_folder(const std::string& folder, const StatusOptions& options) {
  return {.is_live = [folder] { return Result<bool>(cli::is_live(folder)); },
          .text =
              [folder, &options] {
                return options.json ? summary_of(folder, options.watch ? report::JsonForm::kCompact
                                                                       : report::JsonForm::kPretty)
                                    : status_of(folder, 1);
              }};
}

Source of_url(const ServedUrl& run, const StatusOptions& options) {
  const report::CardStyle style = report::style_for(1);
  const std::string json = options.watch ? "summary?compact" : "summary";
  const std::string what = options.json ? json : target_of("status", style);
  return {.is_live = [run] { return run.is_live(); },
          .text = [run, what] { return run.ask(what); }};
}

Result<Source> source_of(const StatusOptions& options) {
  if (is_url(options.run)) {
    const auto run = ServedUrl::find(options.run, options.url);
    if (!run) return run.error();
    return of_url(*run, options);
  }
  const auto folder = resolve_run(options.run, absolute_path("."), current_environment());
  if (!folder) return folder.error();
  return of_folder(*folder, options);
}

int status(const StatusOptions& options) {
  if (options.exclude_list) {
    if (is_url(options.run))
      return wrong_use({"--exclude-list is for a run's folder, not for a URL", ""});
    const auto folder = resolve_run(options.run, absolute_path("."), current_environment());
    return folder ? exclude_list(*folder) : wrong_use(folder.error());
  }
  const auto source = source_of(options);
  if (!source) return wrong_use(source.error());
  const bool on_screen = options.watch && !options.json && ::isatty(1) != 0;
  const std::string clear = on_screen ? "\x1b[H\x1b[2J" : "";
  bool answered = false;
  for (int64_t due = monotonic_ns();; due += kIntervalNs) {
    // Before asking: what a run that ended meanwhile prints is final.
    const auto live = options.watch ? source->is_live() : Result<bool>(false);
    const auto text = live ? source->text() : Result<std::string>(live.error());
    if (!text && answered) {  // a run's page ends with it
      say(text.error().message);
      return kFine;
    }
    if (!text) return wrong_use(text.error());
    answered = true;
    print(clear + *text);
    if (!*live) return kFine;
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
                         "Folder, name or id of the run (default: the newest), or the URL where it "
                         "is served");
  add_url_flags(*status_app, options->url);
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
