// The subcommands: one file each. add_x() declares the arguments; parsing them chooses the action,
// which runs the command and returns its exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace stepscope::cli {

using Action = std::function<int()>;
CLI::App* find_command(CLI::App& app, const std::string& name);  // nullptr when there is none

// The user's command of `run` or `tune loader`: everything from the first word that is no option of
// ours, or after "--". CLI11 never sees it, so its flags are its own.
struct RunWords {
  std::vector<std::string> own, command;
};
RunWords split_run_words(const CLI::App& run, const std::vector<std::string>& words);

void add_run(CLI::App& app, const std::vector<std::string>& command, Action& action);
void add_show(CLI::App& app, Action& action);
void add_simulate(CLI::App& app, Action& action);
void add_status(CLI::App& app, Action& action);
void add_top(CLI::App& app, Action& action);
void add_runs(CLI::App& app, Action& action);
void add_compare(CLI::App& app, Action& action);
void add_export(CLI::App& app, Action& action);
void add_clean(CLI::App& app, Action& action);
void add_hub(CLI::App& app, Action& action);
void add_serve(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action);
void add_completion(CLI::App& app, Action& action);
void add_tune(CLI::App& app, const std::vector<std::string>& command, Action& action);
void add_inspect(CLI::App& app, Action& action);
// Ours alone: not in --help.
void add_agent(CLI::App& app, Action& action);
void add_loader_search(CLI::App& app, Action& action);

}  // namespace stepscope::cli
