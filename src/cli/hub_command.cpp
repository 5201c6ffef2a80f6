// stepscope hub: joins the nodes of runs, until it is told to stop.

#include <csignal>
#include <memory>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/hub_runs.h"
#include "cli/say.h"
#include "cli/server_process.h"
#include "hub/endpoint.h"
#include "hub/server.h"

namespace stepscope::cli {
namespace {

constexpr std::chrono::milliseconds kTick{100};
constexpr int64_t kGoneGraceNs = 5'000'000'000;

struct HubOptions {
  std::string listen, token_file, tls_cert, tls_key, run_dir, until_gone;
};

Result<hub::ServerOptions> server_options(const HubOptions& options) {
  hub::ServerOptions server;
  auto listen = hub::parse_listen(options.listen);
  if (!listen) return listen.error();
  server.listen = std::move(*listen);
  if (options.token_file.empty())
    return Error{"hub: there is no listener without --token-file",
                 "make one: (umask 077; openssl rand -hex 32 > token)"};
  auto token = hub::read_token(options.token_file);
  if (!token) return token.error();
  server.token = std::move(*token);
  if (options.tls_cert.empty() != options.tls_key.empty())
    return Error{"hub: --tls-cert and --tls-key go together", "give both, or neither"};
  if (options.tls_cert.empty()) return server;
  auto tls = hub::make_hub_tls(options.tls_cert, options.tls_key);
  if (!tls) return tls.error();
  server.tls = std::move(*tls);
  server.listen.tls = true;
  return server;
}

void greet(const HubOptions& options, const hub::ServerOptions& server, uint16_t port) {
  hub::Endpoint here = server.listen;
  here.port = port;
  std::string trust;
  if (server.listen.tls)
    if (const auto pin = hub::pin_of(options.tls_cert)) trust = " --pin sha256:" + *pin;
  say("hub: listening on " + hub::url_of(here));
  here.host = "HOST";
  say_hint("on each node: stepscope run --hub " + hub::url_of(here) + trust +
           " --token-file FILE CMD...");
}

int hub_main(const HubOptions& options) {
  auto settings = server_options(options);
  if (!settings) return wrong_use(settings.error());
  const hub::ServerOptions server_settings = *settings;
  const sigset_t stopping = block_stopping_signals();
  ::signal(SIGXFSZ, SIG_IGN);
  raise_descriptor_limit();

  hub::Log log([](const std::string& line) { say("hub: " + line); });
  const std::string run_dir = options.run_dir.empty() ? "" : absolute_path(options.run_dir);
  HubRuns runs(run_dir, absolute_path("."), log);
  hub::Server server(std::move(*settings), runs, log);
  if (const Status listening = server.listen(); !listening) return wrong_use(listening.error());
  greet(options, server_settings, server.port());

  int64_t gone_ns = 0;
  server.every(kTick, [&] {
    const int64_t now = monotonic_ns();
    runs.tick(server, now);
    if (is_told_to_stop(stopping)) return server.stop();
    if (options.until_gone.empty() || is_folder(options.until_gone) || !runs.empty()) {
      gone_ns = 0;
      return;
    }
    if (gone_ns == 0) gone_ns = now;
    // Its nodes may still read the summary.
    if (now - gone_ns > kGoneGraceNs) server.stop();
  });
  server.run();
  runs.leave(monotonic_ns());
  return kFine;
}

}  // namespace

void add_hub(CLI::App& app, Action& action) {
  const auto options = std::make_shared<HubOptions>();
  CLI::App* hub_app =
      app.add_subcommand("hub", "Join the nodes of runs: one report for all of them");
  hub_app->footer(
      "Each node runs: stepscope run --hub URL --token-file FILE CMD...\n"
      "Runs are told apart by their id (torchrun's, Slurm's, or --run-id). A hub that was killed "
      "and\n"
      "started again in the same folder goes on with its runs. SIGTERM writes their summaries.");
  hub_app->add_option("--listen", options->listen, "Where nodes connect")
      ->option_text("ADDR:PORT")
      ->required();
  hub_app->add_option("--token-file", options->token_file, "File (mode 600) with the shared token")
      ->option_text("FILE");
  hub_app->add_option("--tls-cert", options->tls_cert, "Certificate, PEM")->option_text("FILE");
  hub_app->add_option("--tls-key", options->tls_key, "Its key, PEM")->option_text("FILE");
  hub_app
      ->add_option("--run-dir", options->run_dir,
                   "Folder for the run's files (default: stepscope-runs/NAME for each run)")
      ->option_text("DIR");
  hub_app->add_option("--until-gone", options->until_gone)->group("");  // of run --hub-listen
  hub_app->callback([&action, options] { action = [options] { return hub_main(*options); }; });
}

}  // namespace stepscope::cli
