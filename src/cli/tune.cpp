// stepscope tune loader: tries DataLoader settings in the user's own loop, and says which are best.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <memory>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/child.h"
#include "cli/commands.h"
#include "cli/install.h"
#include "cli/say.h"
#include "cli/tune_progress.h"
#include "cli/tune_result.h"
#include "cli/tune_search.h"
#include "cli/tune_trial.h"

namespace stepscope::cli {
namespace {

constexpr double kLeastPatienceS = 60, kPatienceOfOwn = 4;
constexpr int kGuess = 7;  // trials, before anything is known

struct TuneOptions {
  std::string output, apply_file;
  int steps = 60, max_trials = 40;
  double seconds = 30;
  bool json = false, quiet = false;
};

int fail(const Error& error, int exit_code = kWrongUse) {
  say_error(error);
  return exit_code;
}

// The command again as `stepscope run`, with the settings put in. Returns only when that fails.
int run_with(const Tuned& tuned, const std::vector<std::string>& command) {
  if (tuned.variable.empty()) {
    say("your own settings are the best: the run is as you start it");
    ::unsetenv("STEPSCOPE_LOADER");
  } else {
    say(fmt::format("running with {}: while tuning {:.3g} steps/s, {:.3g} with your own",
                    tuned.settings, tuned.best_steps_per_s, tuned.own_steps_per_s));
    ::setenv("STEPSCOPE_LOADER", tuned.variable.c_str(), 1);
  }
  std::vector<std::string> words{own_path(), "run", "--"};
  words.insert(words.end(), command.begin(), command.end());
  const ExecFailure failure = become(words);
  return fail(failure.error, failure.exit_code);
}

int apply(const std::string& file, const std::vector<std::string>& command) {
  const auto tuned = read_tuned(file);
  if (!tuned) return fail(tuned.error());
  if (tuned->command != command)
    say("these settings were found for another command: " +
        printable(fmt::format("{}", fmt::join(tuned->command, " ")), 200));
  return run_with(*tuned, command);
}

// The tuner's state while trials go on.
class Tuning {
 public:
  Tuning(TuneOptions options, std::vector<std::string> command, Environment environment,
         Signals signals)
      : options_(std::move(options)),
        signals_(std::move(signals)),
        inject_(find_inject_folder(own_path(), environment)),
        runner_({.command = command,
                 .environment = std::move(environment),
                 .inject = inject_,
                 .measure_s = options_.seconds}),
        progress_(options_.quiet) {
    command_ = std::move(command);
  }

  // An Error: nothing can be said. Else the exit code.
  Result<int> run() {
    if (!inject_)
      return Error{"the Python part of stepscope was not found beside " + own_path(),
                   "install it again (pip install .), or set STEPSCOPE_HOME"};
    const int64_t begin_ns = monotonic_ns();
    auto own = one({.settings = {}, .steps = options_.steps, .own = true}, nullptr);
    if (!own) return own.error();
    if (own->signal != 0) return 128 + own->signal;
    if (const Status usable = check(*own); !usable) return usable.error();
    runner_.set_patience(std::max(kLeastPatienceS, kPatienceOfOwn * own->seconds));
    TuneSearch search(std::move(*own),
                      {.steps = options_.steps, .most_trials = options_.max_trials});
    int signal = 0;
    while (const auto request = search.next()) {
      auto trial = one(*request, &search);
      if (!trial) return trial.error();
      signal = trial->signal;
      if (signal != 0) break;
      search.tell(std::move(*trial));
    }
    const double seconds = static_cast<double>(monotonic_ns() - begin_ns) / 1e9;
    result_ = search.result(signal != 0, seconds);
    result_.command = command_;
    return signal != 0 ? 128 + signal : kFine;
  }

  const TuneResult& result() const { return result_; }
  void give_back() const { signals_.give_back(); }

 private:
  // search: nullptr for the first, of which nothing is known.
  Result<TrialResult> one(const tuner::Request& request, const TuneSearch* search) {
    TrialRequest trial{
        .loader = request.own ? "" : loader_variable(search->loaders(), request.settings),
        .settings = request.settings,
        .steps = request.steps,
        .steps_per_epoch = search == nullptr ? 0 : search->steps_per_epoch()};
    progress_.begin(++trials_, search == nullptr ? kGuess : search->expected_trials(),
                    request.own ? "your own settings" : tuner::as_arguments(request.settings),
                    request.steps);
    auto result = runner_.run(
        trial, signals_, [this](int steps, double seconds) { progress_.update(steps, seconds); });
    if (!result) return result;
    const tuner::Rate rate = tuner::rate_of({result->run});
    progress_.end(result->signal != 0 ? "interrupted"
                  : rate.steps == 0   ? "failed: " + result->run.failed
                                      : fmt::format("{:.3g} steps/s, {:.0f} % of it waits for data",
                                                    rate.steps_per_s, 100 * rate.input_share));
    return result;
  }

  static Status check(const TrialResult& own) {
    if (!own.run.failed.empty())
      return Error{"your own settings gave no figure: " + own.run.failed +
                       (own.output.empty() ? "" : "\nits last output:\n" + own.output),
                   "the command must make at least 8 steps after its first ones; see that it runs: "
                   "stepscope run ..."};
    for (const int number : own.training)
      if (own.process.loaders.contains(number)) return ok();
    return Error{"no DataLoader feeds the training loop of this command",
                 "for other sources of batches there is nothing to tune; see: stepscope run ..."};
  }

  TuneOptions options_;
  Signals signals_;
  std::optional<std::string> inject_;
  TrialRunner runner_;
  TuneProgress progress_;
  std::vector<std::string> command_;
  TuneResult result_;
  int trials_ = 0;
};

int tune(const TuneOptions& options, bool apply_env, const std::vector<std::string>& words) {
  if (words.empty())
    return fail({"tune loader: there is no command to run",
                 "for example: stepscope tune loader -- python train.py"});
  Environment environment = current_environment();
  const auto command = runnable(words, environment);
  if (!command) return fail(command.error(), 127);
  if (!options.apply_file.empty()) return apply(options.apply_file, *command);
  auto signals = Signals::take_over();
  if (!signals) return fail(signals.error());
  Tuning tuning(options, *command, std::move(environment), std::move(*signals));
  const auto code = tuning.run();
  if (!code) return fail(code.error());
  const TuneResult& result = tuning.result();
  if (result.trials.empty()) return *code;  // interrupted before there was anything
  const std::string json = tuned_json(result);
  if (!options.output.empty())
    if (const Status written = write_file(options.output, json); !written)
      return fail(written.error());
  std::string next;
  if (!options.output.empty()) {
    next = "stepscope tune loader --apply-env " + shell_quote(options.output) + " --";
    for (const std::string& word : words) next += " " + shell_quote(word);
  }
  if (options.json)
    print(json);
  else if (!options.quiet)
    print(tuned_table(result, next));
  if (*code != kFine || !apply_env) return *code;
  tuning.give_back();
  return run_with(tuned(result), *command);
}

}  // namespace

void add_tune(CLI::App& app, const std::vector<std::string>& command, Action& action) {
  const auto options = std::make_shared<TuneOptions>();
  CLI::App* tune_app = app.add_subcommand("tune", "Find better settings by trying them");
  tune_app->require_subcommand(1);
  CLI::App* loader =
      tune_app->add_subcommand("loader", "Try DataLoader settings in the training loop itself");
  loader->footer(
      "stepscope tune loader [OPTIONS] -- CMD...\n"
      "Runs CMD several times under the recorder, each time with other settings of the DataLoader "
      "that feeds the training loop, and ends each run after N steps (SIGKILL). CMD is any "
      "launcher, torchrun as well; its output is not shown, STEPSCOPE_TUNE=1 is in its "
      "environment. Your own settings win ties.\n"
      "With --apply-env the whole CMD then runs, observed, with the best settings put in; with a "
      "FILE of --output at once.");
  loader->add_flag("--json", options->json, "Print one JSON object instead of the table");
  loader->add_option("--output", options->output, "Write that object to FILE")->option_text("FILE");
  CLI::Option* apply_env =
      loader->add_option("--apply-env", options->apply_file, "Then run CMD with the best settings")
          ->option_text("[FILE]")
          ->expected(0, 1);
  loader->add_option("--steps", options->steps, "Steps a run, after its warm-up (default: 60)")
      ->check(CLI::Range(8, 1'000'000));
  loader
      ->add_option("--seconds", options->seconds, "Measure a run no longer than this (default: 30)")
      ->check(CLI::Range(0.1, 86'400.0));
  loader->add_option("--max-trials", options->max_trials, "Runs in all (default: 40)")
      ->check(CLI::Range(1, 1000));
  loader->add_flag("--quiet", options->quiet, "No progress and no table");
  loader->callback([&action, &command, options, apply_env] {
    const bool apply = apply_env->count() > 0;
    action = [&command, options, apply] { return tune(*options, apply, command); };
  });
}

}  // namespace stepscope::cli
