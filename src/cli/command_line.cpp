#include "cli/command_line.h"

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/complete.h"
#include "cli/say.h"

namespace stepscope::cli {
namespace {

constexpr const char* kAbout =
    "Shows where each step of a PyTorch training run goes.\n\n"
    "  stepscope run python train.py    observe a run; no edit of train.py\n"
    "  stepscope status                 who is late now, and why\n"
    "  stepscope top                    the same, to watch, in the terminal\n"
    "  stepscope tune loader -- CMD     try other DataLoader settings in it\n"
    "  stepscope inspect data PATH      what the storage under it can do\n"
    "  stepscope show                   its card again\n"
    "  stepscope compare A B            what changed between two runs, and is it real";

// Letters that two words share at the start, for "did you mean".
size_t common_head(std::string_view a, std::string_view b) {
  return static_cast<size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<long>(std::min(a.size(), b.size())),
                    b.begin())
          .first -
      a.begin());
}

int unknown_command(const CLI::App& app, const std::string& word) {
  std::string nearest;
  size_t best = 0;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    const size_t shared = common_head(command->get_name(), word);
    if (command->get_group().empty() || shared <= best) continue;
    best = shared;
    nearest = command->get_name();
  }
  Error error{"there is no command " + shell_quote(printable(word, 80)),
              "list them: stepscope --help"};
  if (best >= 2) error.hint = "did you mean: stepscope " + nearest;
  if (word.ends_with(".py") || word.starts_with("python"))
    error.hint = "to observe it: stepscope run " + shell_quote(word);
  say_error(error);
  return kWrongUse;
}

int wrong_use(const CLI::App& app, const CLI::ParseError& error) {
  std::string command = "stepscope";
  for (const CLI::App* sub : app.get_subcommands()) command += " " + sub->get_name();
  std::string message = error.what();
  for (char& c : message)
    if (c == '\n') c = ' ';
  say_error({command + ": " + printable(message, 500), "see: " + command + " --help"});
  return kWrongUse;
}

}  // namespace

CLI::App* find_command(CLI::App& app, const std::string& name) {
  const auto found =
      app.get_subcommands([&](const CLI::App* command) { return command->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

int run_command_line(const std::vector<std::string>& arguments) {
  Action action;
  CLI::App app(kAbout, "stepscope");
  app.set_version_flag("--version", std::string("stepscope ") + kVersion,
                       "Print the version and exit");
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.require_subcommand(1);
  std::vector<std::string> command;
  add_run(app, command, action);
  add_tune(app, command, action);
  add_inspect(app, action);
  add_show(app, action);
  add_simulate(app, action);
  add_status(app, action);
  add_top(app, action);
  add_runs(app, action);
  add_compare(app, action);
  add_export(app, action);
  add_clean(app, action);
  add_hub(app, action);
  add_serve(app, action);
  add_doctor(app, action);
  add_completion(app, action);
  add_agent(app, action);
  add_loader_search(app, action);

  std::vector<std::string> words = arguments;
  if (words.empty()) {
    (void)write_all(2, app.help());
    return kWrongUse;
  }
  if (words[0] == "__complete") {  // asked by what `stepscope completion` prints
    print(lines_of(complete(app, {words.begin() + 1, words.end()})));
    return kFine;
  }
  if (!words[0].starts_with('-') && find_command(app, words[0]) == nullptr)
    return unknown_command(app, words[0]);
  if (words[0] == "run") {
    RunWords split = split_run_words(*find_command(app, "run"), {words.begin() + 1, words.end()});
    command = std::move(split.command);
    words = std::move(split.own);
    words.insert(words.begin(), "run");
  } else if (words[0] == "tune" && words.size() > 1 && words[1] == "loader") {
    const CLI::App* loader = find_command(*find_command(app, "tune"), "loader");
    RunWords split = split_run_words(*loader, {words.begin() + 2, words.end()});
    command = std::move(split.command);
    words = std::move(split.own);
    words.insert(words.begin(), {"tune", "loader"});
  }
  std::reverse(words.begin(), words.end());  // CLI11 takes them from the back
  try {
    app.parse(words);
  } catch (const CLI::Success& asked) {  // --help, --version
    app.exit(asked);
    return kFine;
  } catch (const CLI::ParseError& error) {
    return wrong_use(app, error);
  }
  const int code = action ? action() : kWrongUse;
  return code == kFine && output_lost() && !app.got_subcommand("run") ? kWrongUse : code;
}

}  // namespace stepscope::cli
