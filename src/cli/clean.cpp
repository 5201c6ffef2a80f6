// stepscope clean: finishes what was killed, removes dead segments, and runs if asked.
#include <unistd.h>

#include <iostream>
#include <memory>
#include <set>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/recover.h"
#include "cli/run_folder.h"
#include "cli/run_list.h"
#include "cli/say.h"
#include "cli/segment_folder.h"

namespace stepscope::cli {
namespace {

struct CleanOptions {
  std::vector<std::string> runs;
  std::string older_than;
  bool all = false, yes = false;
};

void plural(std::string& text, int count, const std::string& what) {
  if (count == 0) return;
  if (!text.empty()) text += ", ";
  text += std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

// Dead segments go always: a run that cannot be finished (its folder takes nothing) is said and
// left.
void clean_segments() {
  const Recovered done = finish_dead_runs([] { return true; });
  for (const std::string& problem : done.problems) say(problem);
  std::string text;
  plural(text, done.finished, "finished run");
  plural(text, done.removed, "folder of dead segments removed");
  if (text.empty()) text = "no dead segments";
  print(text + "\n");
  if (done.live > 0) print(std::to_string(done.live) + " live, left alone\n");
  if (done.foreign > 0)
    print(std::to_string(done.foreign) + " of another container, left alone for a day\n");
}

Result<std::vector<std::string>> chosen_runs(const CleanOptions& options) {
  const std::string cwd = absolute_path(".");
  const Environment environment = current_environment();
  std::vector<std::string> folders;
  for (const std::string& run : options.runs) {
    const auto folder = resolve_run(run, cwd, environment);
    if (!folder) return folder.error();
    folders.push_back(*folder);
  }
  if (!options.all && options.older_than.empty()) return folders;
  int64_t before_ns = INT64_MAX;
  if (!options.older_than.empty()) {
    const auto age_s = parse_duration_s(options.older_than);
    if (!age_s)
      return Error{
          "--older-than " + shell_quote(printable(options.older_than, 80)) + " is not a time",
          "use a number and s, m, h or d, such as 7d"};
    before_ns = wall_ns() - *age_s * 1'000'000'000;
  }
  for (const std::string& place : run_places(cwd, environment))
    for (const RunRow& row : list_runs(place))
      if (row.started_wall_ns < before_ns) folders.push_back(row.folder);
  return folders;
}

bool agreed(const std::vector<std::string>& folders) {
  if (::isatty(0) == 0 || ::isatty(2) == 0) {
    say_error({"removing " + std::to_string(folders.size()) + " run" +
                   (folders.size() == 1 ? "" : "s") +
                   " needs a yes, and there is no terminal to ask on",
               "add --yes"});
    return false;
  }
  for (const std::string& folder : folders) (void)write_all(2, "  " + printable(folder) + "\n");
  (void)write_all(2, "remove these runs? [y/N] ");
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

int clean(const CleanOptions& options) {
  clean_segments();
  const auto chosen = chosen_runs(options);
  if (!chosen) {
    say_error(chosen.error());
    return kWrongUse;
  }
  std::vector<std::string> folders;
  int live = 0;
  for (const std::string& folder : std::set<std::string>(chosen->begin(), chosen->end())) {
    if (is_live(folder)) {
      say("still going on, left alone: " + printable(folder));
      ++live;
    } else {
      folders.push_back(folder);
    }
  }
  const bool asked = !options.runs.empty() || options.all || !options.older_than.empty();
  if (!asked) {
    say_hint("remove runs too: stepscope clean --all, or --older-than 7d, or name them");
    return kFine;
  }
  if (folders.empty()) {
    print("no run to remove\n");
    return live > 0 && !options.runs.empty() ? kCheckFailed : kFine;
  }
  const bool swept = options.all || !options.older_than.empty();  // a run that was named is meant
  if (swept && !options.yes && !agreed(folders)) return kWrongUse;
  int removed = 0;
  for (const std::string& folder : folders) {
    remove_run_files(folder);
    if (holds_run(folder))
      say("cannot remove " + printable(folder));
    else
      ++removed;
  }
  print(std::to_string(removed) + (removed == 1 ? " run removed\n" : " runs removed\n"));
  return removed == static_cast<int>(folders.size()) ? kFine : kWrongUse;
}

}  // namespace

void add_clean(CLI::App& app, Action& action) {
  const auto options = std::make_shared<CleanOptions>();
  CLI::App* clean_app = app.add_subcommand("clean", "Remove dead segments, and runs if asked");
  clean_app->footer("Runs that were killed are finished first. What is going on is never touched.");
  clean_app->add_option("RUN", options->runs, "Runs to remove: folder, name or id");
  clean_app->add_flag("--all", options->all, "Remove every run below ./stepscope-runs");
  clean_app
      ->add_option("--older-than", options->older_than,
                   "Remove runs that began longer ago, such as 7d")
      ->option_text("TIME");
  clean_app->add_flag("--yes", options->yes, "Do not ask before --all or --older-than");
  clean_app->callback([&action, options] { action = [options] { return clean(*options); }; });
}

}  // namespace stepscope::cli
