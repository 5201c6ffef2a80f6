// stepscope status: the verdict now, what was found and when, who does what. Changes nothing.
#include <poll.h>
#include <unistd.h>

#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/card_text.h"
#include "cli/commands.h"
#include "cli/hub_folder.h"
#include "cli/run_folder.h"
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

// A node's own run knows the others only once the hub has told it, at the end.
Error only_the_hub_knows(const report::LateNodes& late, const StatusOptions& options) {
  const auto folder = is_url(options.run)
                          ? Result<std::string>(Error{})
                          : resolve_run(options.run, absolute_path("."), current_environment());
  const std::string seen =
      std::to_string(late.ranks) + " of the run's " + std::to_string(late.world_size) + " ranks";
  const std::string at_hub = folder ? told_folder_of_hub(*folder) : "";
  return {"which nodes are late cannot be said here: this node sees " + seen,
          "the hub sees all of them; on its machine: stepscope status --exclude-list" +
              (at_hub.empty() ? " RUN" : " " + shell_quote(at_hub))};
}

int exclude_list(const Source& source, const StatusOptions& options) {
  const auto text = source.text();
  if (!text) return wrong_use(text.error());
  const auto late = report::chronically_late_nodes(*text);
  if (!late) return wrong_use(late.error());
  if (late->ranks < late->world_size) return wrong_use(only_the_hub_knows(*late, options));
  for (const std::string& node : late->nodes) print(node + "\n");
  return kFine;
}

// The node that holds the hub has the whole run's folder below its own.
std::string with_hub_below(StatusOptions options) {
  const auto folder = resolve_run(options.run, absolute_path("."), current_environment());
  const std::string below = folder ? *folder + "/hub" : "";
  return !below.empty() && holds_run(below) ? below : options.run;
}

int status(StatusOptions options) {
  if (options.exclude_list) {
    options.json = true;
    if (!is_url(options.run)) options.run = with_hub_below(options);
  }
  const auto source = source_of(options);
  if (!source) return wrong_use(source.error());
  if (options.exclude_list) return exclude_list(*source, options);
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
