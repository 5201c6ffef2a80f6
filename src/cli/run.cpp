// stepscope run: prepares the run, hands it to the supervisor, and shows what came of it.
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <optional>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/child.h"
#include "cli/child_environment.h"
#include "cli/commands.h"
#include "cli/hub_options.h"
#include "cli/identity.h"
#include "cli/install.h"
#include "cli/recover.h"
#include "cli/run_end.h"
#include "cli/run_folder.h"
#include "cli/say.h"
#include "cli/segment_folder.h"
#include "cli/serve_options.h"
#include "cli/supervisor.h"
#include "model/settings.h"
#include "ring/segment_file.h"
#include "sampler/sampler.h"

namespace stepscope::cli {
namespace {

constexpr int64_t kJoinWaitNs = 5'000'000'000;
constexpr size_t kMaxToml = 1 << 20;

struct RunOptions {
  std::string run_dir, name, run_id, fail_on;
  std::vector<std::string> set;
  bool overwrite = false, quiet = false, json = false, serve = false;
  HubFlags hub;
  ServeFlags page;  // token and certificate are among the hub's flags
};

// What was asked for, checked.
struct Wanted {
  Settings settings;
  std::map<std::string, std::string> hub;  // check_hub_flags()
};

// --token-file and --tls-... are the hub's and the page's, as far as there are these.
HubFlags flags_of_hub(const RunOptions& options) {
  HubFlags flags = options.hub;
  if (!options.serve) return flags;
  if (flags.hub.empty() && flags.hub_listen.empty()) flags.token_file.clear();
  if (flags.hub_listen.empty()) {
    flags.tls_cert.clear();
    flags.tls_key.clear();
  }
  return flags;
}

Result<std::optional<ServePlan>> plan_of_page(const RunOptions& options) {
  ServeFlags flags = options.page;
  if (!options.serve) {
    if (!flags.listen.empty() || !flags.allow_host.empty())
      return Error{"--listen and --allow-host go with --serve", "add --serve"};
    if (!flags.any_push()) return std::optional<ServePlan>();
  } else {
    flags.token_file = options.hub.token_file;
    flags.tls_cert = options.hub.tls_cert;
    flags.tls_key = options.hub.tls_key;
  }
  auto plan = check_serve_flags(flags);
  if (!plan) return plan.error();
  return std::optional(std::move(*plan));
}

// What the child and the agent need to know; folder empty: the run is not recorded.
struct Prepared {
  std::string segment_folder;
  bool owner = false;
  RunInfo info;
  Member self;
};

Result<Settings> settings_of(const RunOptions& options, const Environment& environment) {
  std::map<std::string, std::string> flags;
  for (const std::string& word : options.set) {
    const size_t equals = word.find('=');
    if (equals == 0 || equals == std::string::npos)
      return Error{"--set " + shell_quote(printable(word, 200)) + " is not KEY=VALUE",
                   "for example: --set input_warning=0.15"};
    flags[word.substr(0, equals)] = word.substr(equals + 1);
  }
  std::string toml;
  if (exists("stepscope.toml")) {
    auto content = read_file("stepscope.toml", kMaxToml);
    if (!content) return content.error();
    toml = std::move(*content);
  }
  return load_settings(flags, environment, toml, "stepscope.toml");
}

Member own_member(const Environment& environment) {
  Member self;
  const ring::OwnProcess own = ring::own_process();
  self.pid = own.pid;
  self.start = own.start_ticks;
  self.rank = rank_of(environment);
  return self;
}

// Founds the run: its folder, run.txt. An Error is wrong use.
Status found(const RunOptions& options, const Identity& identity,
             const std::vector<std::string>& command, const Wanted& wanted,
             const Environment& environment, Prepared& run) {
  RunInfo& info = run.info;
  info.id = identity.id;
  info.command = command;
  info.settings = wanted.settings.effective();
  info.started_wall_ns = wall_ns();
  info.started_mono_ns = monotonic_ns();
  info.owner_pid = run.self.pid;
  info.owner_start = run.self.start;
  info.pid_namespace = own_pid_namespace();
  FolderRequest request;
  request.run_dir = options.run_dir;
  request.overwrite = options.overwrite;
  request.name = options.name.empty()
                     ? script_stem(command) + "-" + time_label(info.started_wall_ns)
                     : options.name;
  request.cwd = absolute_path(".");
  request.run_id = identity.id;
  request.launcher_id = identity.launcher;
  request.environment = environment;
  auto folder = make_run_folder(request);
  if (!folder) return folder.error();
  info.folder = folder->path;
  info.name = folder->name;
  info.notices = folder->notices;
  info.hub = wanted.hub;
  if (!info.hub.empty() && identity.shared) info.hub["run_id"] = identity.id;
  return ok();
}

Identity identity_of(const RunOptions& options, const Environment& environment) {
  IdentityInput input{.run_id_flag = options.run_id, .environment = environment};
  input.parent_pid = ::getppid();
  input.parent_start = sampler::process_start(input.parent_pid).value_or(0);
  input.pid_namespace = own_pid_namespace();
  input.random = random_number();
  return choose_identity(input);
}

// Joins or founds the run. Wrong use is an Error; whatever else goes wrong leaves the run
// unrecorded and is said.
Result<Prepared> prepare(const RunOptions& options, const std::vector<std::string>& command,
                         const Wanted& wanted, const Environment& environment) {
  Prepared run;
  run.self = own_member(environment);
  const auto unrecorded = [&](const Error& error) {
    if (!options.quiet) say_error({"this run is not recorded: " + error.message, error.hint});
    run.segment_folder.clear();
    return run;
  };
  Identity identity = identity_of(options, environment);
  auto joined = join_segment_folder(identity.key, kJoinWaitNs, &finish_dead_run);
  if (!joined) return unrecorded(joined.error());
  run.segment_folder = joined->folder;
  run.owner = joined->owner;
  if (run.owner) {
    if (const Status founded = found(options, identity, command, wanted, environment, run);
        !founded) {
      remove_locked_segment_folder(run.segment_folder);
      return founded.error();
    }
    if (const Status written = write_run_info(run.segment_folder, run.info); !written)
      return unrecorded(written.error());
    if (!options.quiet)
      for (const std::string& notice : run.info.notices) say(notice);
  } else if (auto info = read_run_info(run.segment_folder)) {
    run.info = std::move(*info);
  }
  if (const Status written = write_member(run.segment_folder, run.self); !written)
    return unrecorded(written.error());
  return run;
}

std::vector<std::string> child_environment(const Prepared& run,
                                           const std::optional<std::string>& inject,
                                           const Settings& settings,
                                           const Environment& environment) {
  if (run.segment_folder.empty()) return environment_with({});
  return observed_environment(run.segment_folder, run.info.id, inject, settings, environment);
}

// Every setting with its default.
std::string settings_help() {
  constexpr size_t kWidth = 96;
  std::string text, line;
  for (const auto& [key, value] : Settings().effective()) {
    const std::string word = "  " + key + "=" + value;
    if (line.size() + word.size() > kWidth) {
      text += "\n" + line;
      line.clear();
    }
    line += word;
  }
  return text + "\n" + line;
}

int fail(const Error& error, int exit_code) {
  say_error(error);
  return exit_code;
}

// The command never ran: nothing of the run is kept.
void forget(const Prepared& run, const Supervisor& supervisor) {
  if (!run.owner || run.segment_folder.empty() || supervisor.others_alive()) return;
  remove_run_files(run.info.folder);
  remove_segment_folder(run.segment_folder);
}

// What is wrong with the page never keeps a run from running.
void show_page(const ServePlan& plan, const RunOptions& options, const Prepared& run,
               Supervisor& supervisor) {
  if (run.segment_folder.empty()) return;
  if (!run.owner) {
    if (options.serve) say("the page of this run is that of its first process on this machine");
    return;
  }
  auto page = PageProcess::prepare(plan, options.page, options.serve);
  if (!page) return say_error({"there is no page: " + page.error().message, page.error().hint});
  if (options.serve) say("page: " + page->url());
  supervisor.show_page(std::move(*page));
}

int run(const RunOptions& options, const std::vector<std::string>& words) {
  if (words.empty())
    return fail({"run: there is no command to run", "for example: stepscope run python train.py"},
                kWrongUse);
  const Environment environment = current_environment();
  const auto command = runnable(words, environment);
  if (!command) return fail(command.error(), 127);
  if (const auto off = environment.find("STEPSCOPE");
      off != environment.end() && off->second == "0") {
    const ExecFailure failure = become(*command);
    return fail(failure.error, failure.exit_code);
  }
  const auto settings = settings_of(options, environment);
  if (!settings) return fail(settings.error(), kWrongUse);
  const auto hub = check_hub_flags(flags_of_hub(options));
  if (!hub) return fail(hub.error(), kWrongUse);
  const auto page = plan_of_page(options);
  if (!page) return fail(page.error(), kWrongUse);
  if (!options.name.empty())
    if (const Status named = check_name(options.name); !named)
      return fail(named.error(), kWrongUse);

  auto signals = Signals::take_over();
  if (!signals) return fail(signals.error(), kWrongUse);
  std::optional<Witness> witness;
  if (auto started = Witness::start()) witness.emplace(std::move(*started));
  const auto inject = find_inject_folder(own_path(), environment);
  auto prepared = prepare(options, *command, {*settings, *hub}, environment);
  if (!prepared) return fail(prepared.error(), kWrongUse);
  Prepared& run = *prepared;
  if (!inject && !run.segment_folder.empty() && !options.quiet)
    say_error(
        {"the Python part of stepscope was not found beside " + own_path() +
             ": only programs that use stepscope/recorder.h are observed",
         "install it again (pip install .), or set STEPSCOPE_HOME to the folder of the package"});

  Supervisor supervisor(std::move(*signals), std::move(witness), run.segment_folder, run.owner,
                        options.quiet, run.self);
  if (*page) show_page(**page, options, run, supervisor);
  const Started started =
      supervisor.start(*command, child_environment(run, inject, *settings, environment));
  if (started.error_number != 0) {
    forget(run, supervisor);
    const ExecFailure failure = exec_failure((*command)[0], started.error_number);
    return fail(failure.error, failure.exit_code);
  }
  const int exit_code = supervisor.wait();
  if (run.segment_folder.empty()) return exit_code;
  // Other ranks go on: this rank's launcher must not wait for them. Rank 0 waits a little, for the
  // card.
  if (run.self.rank != 0 && supervisor.others_alive()) return exit_code;
  const Supervisor::RunEnd end = supervisor.wait_for_end();
  if (run.self.rank != 0) return exit_code;
  const int code = show_end({.folder = end.moved_to.empty() ? run.info.folder : end.moved_to,
                             .finished = end.finished,
                             .others_alive = end.others_alive,
                             .interrupted = end.interrupted,
                             .said = end.said,
                             .quiet = options.quiet,
                             .json = options.json,
                             .fail_on = options.fail_on,
                             .exit_code = exit_code});
  supervisor.wait_for_page();
  return code;
}

}  // namespace

RunWords split_run_words(const CLI::App& run, const std::vector<std::string>& words) {
  RunWords out;
  size_t i = 0;
  for (; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") {
      ++i;
      break;
    }
    if (!word.starts_with('-')) break;
    out.own.push_back(word);
    const CLI::Option* option = run.get_option_no_throw(word);
    if (option != nullptr && option->get_items_expected_max() > 0 && i + 1 < words.size() &&
        words[i + 1] != "--")
      out.own.push_back(words[++i]);
  }
  out.command.assign(words.begin() + static_cast<long>(i), words.end());
  return out;
}

void add_run(CLI::App& app, const std::vector<std::string>& command, Action& action) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App* run_app =
      app.add_subcommand("run", "Run a command and observe every training process in it");
  run_app->footer(
      "stepscope run [OPTIONS] [--] CMD...\n"
      "CMD is any launcher: python train.py, -m module, torchrun, accelerate launch; `train.py "
      "...` is run with python.\n"
      "Its exit code is passed on (killed by signal N: 128 + N). The card goes to stderr, stdout "
      "is CMD's alone.\n"
      "STEPSCOPE=0 in the environment runs CMD without recording.\n\n"
      "Settings, by --set KEY=VALUE, STEPSCOPE_KEY, or key = value in ./stepscope.toml:" +
      settings_help());
  run_app
      ->add_option("--run-dir", options->run_dir,
                   "Folder for the run's files (default: stepscope-runs/NAME)")
      ->option_text("DIR");
  run_app->add_flag("--overwrite", options->overwrite, "Replace the run that --run-dir holds");
  run_app->add_option("--name", options->name, "Name of the run (default: script and start time)")
      ->option_text("NAME");
  run_app->add_option("--run-id", options->run_id, "Processes with the same id are one run")
      ->option_text("ID");
  run_app->add_flag("--quiet", options->quiet, "No card and no notices");
  run_app->add_flag("--json", options->json, "Print summary.json to stdout after CMD's end");
  run_app->add_option("--set", options->set, "Change a setting; may be repeated")
      ->option_text("KEY=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  run_app
      ->add_option("--fail-on", options->fail_on,
                   "Exit with 1 when CMD ended well but a certain finding is this bad")
      ->option_text("warning|critical")
      ->check(CLI::IsMember({"warning", "critical"}));
  run_app->add_flag("--serve", options->serve,
                    "Show the run in the browser while it goes on; the address goes to stderr");
  add_listen_flags(*run_app, options->page);
  add_metrics_flags(*run_app, options->page);
  add_hub_flags(*run_app, options->hub);
  run_app->callback([&action, &command, options] {
    action = [&command, options] { return run(*options, command); };
  });
}

}  // namespace stepscope::cli
