// stepscope show: the card of a run, or its summary.json, again.
#include <poll.h>

#include <memory>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/card_text.h"
#include "cli/commands.h"
#include "cli/recover.h"
#include "cli/run_list.h"
#include "cli/say.h"
#include "cli/segment_folder.h"
#include "cli/served_url.h"

namespace stepscope::cli {
namespace {

constexpr int64_t kFinishOthersNs = 5'000'000'000;
constexpr int64_t kDyingNs = 300'000'000;  // a kill -9 just sent takes a moment to arrive

struct ShowOptions {
  std::string run;
  UrlFlags url;
  bool json = false;
};

// This run's remains whatever it takes, the others' within a bounded time. An agent that is at it
// is waited for.
void finish_first(const std::string& run_folder) {
  const int64_t begin = monotonic_ns();
  const auto in_time = [&] { return monotonic_ns() < begin + kFinishOthersNs; };
  for (auto folder = segment_folder_of(run_folder); folder && in_time();
       folder = segment_folder_of(run_folder)) {
    std::string said;
    const Recovery how = finish_segment_folder(*folder, &said);
    if (!said.empty()) say(said);
    const bool perhaps_dying =
        how == Recovery::kLive && !agent_alive(*folder) && monotonic_ns() < begin + kDyingNs;
    if (how != Recovery::kBusy && !perhaps_dying) break;
    ::poll(nullptr, 0, 20);
  }
  (void)finish_dead_runs(in_time);
  if (segment_folder_of(run_folder)) return;
  if (const Status finished = finish_run_folder(run_folder);
      !finished && !exists(run_folder + "/summary.txt"))
    say_error(finished.error());
}

int show_served(const ShowOptions& options) {
  const auto run = ServedUrl::find(options.run, options.url);
  const auto text =
      run ? run->ask(options.json ? "summary" : target_of("card", report::style_for(1)))
          : Result<std::string>(run.error());
  if (!text) return wrong_use(text.error());
  print(*text);
  return kFine;
}

int show(const ShowOptions& options) {
  if (is_url(options.run)) return show_served(options);
  const std::string cwd = absolute_path(".");
  const Environment environment = current_environment();
  // A run that was never finished may be the newest, so finishing comes before looking.
  const int64_t deadline = monotonic_ns() + kFinishOthersNs;
  if (options.run.empty()) (void)finish_dead_runs([&] { return monotonic_ns() < deadline; });
  const auto folder = resolve_run(options.run, cwd, environment);
  if (!folder) {
    say_error(folder.error());
    return kWrongUse;
  }
  finish_first(*folder);
  if (options.json) {
    const auto summary = summary_of(*folder);
    if (!summary) {
      say_error(summary.error());
      return kWrongUse;
    }
    print(*summary);
    return kFine;
  }
  const auto card = card_of(*folder, 1);
  if (!card) {
    say_error(card.error());
    return kWrongUse;
  }
  if (!card->warning.empty()) say(card->warning);
  print(card->text);
  return kFine;
}

}  // namespace

void add_show(CLI::App& app, Action& action) {
  const auto options = std::make_shared<ShowOptions>();
  CLI::App* show_app = app.add_subcommand("show", "Print a run's card, or summary.json, again");
  show_app->footer(
      "A run that is going on shows its present state. One that was killed is finished first.");
  show_app->add_option(
      "RUN", options->run,
      "Folder, name or id of the run (default: the newest), or the URL where it is "
      "served");
  add_url_flags(*show_app, options->url);
  show_app->add_flag("--json", options->json, "Print summary.json");
  show_app->callback([&action, options] { action = [options] { return show(*options); }; });
}

}  // namespace stepscope::cli
