// stepscope serve: the page of the runs below a folder, or of one run, until it is told to stop. With
// --of (ours alone) the page of a run that goes on, until that ends.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/install.h"
#include "cli/recover.h"
#include "cli/run_folder.h"
#include "cli/run_list.h"
#include "cli/say.h"
#include "cli/segment_folder.h"
#include "cli/serve_options.h"
#include "cli/served_runs.h"
#include "cli/server_process.h"
#include "web/server.h"

namespace stepscope::cli {
namespace {

constexpr std::chrono::milliseconds kTick{100};
constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kGoodbyeNs = 800'000'000;  // for the viewers of a run that has ended
constexpr int64_t kLostNs = 10 * kSecond;    // a run whose agent and processes are all gone
constexpr int64_t kFinishNs = 5 * kSecond;
constexpr int kNice = 5;
constexpr size_t kMaxToken = 8192;

struct ServeOptions {
  std::string what;  // DIR or RUN
  ServeFlags flags;
  std::string of;      // segment folder of the run
  int listen_fd = -1;  // with it: the token comes from stdin
};

std::string token_from_stdin() {
  std::string token;
  char buffer[1024];
  for (ssize_t n; token.size() < kMaxToken && (n = ::read(0, buffer, sizeof buffer)) > 0;)
    token.append(buffer, static_cast<size_t>(n));
  return token;
}

// A folder of runs, a run's folder, its name or id.
Result<std::unique_ptr<ServedRuns>> what_is_served(const std::string& what) {
  const Environment environment = current_environment();
  const std::string cwd = absolute_path(".");
  if (what.empty()) return std::make_unique<ServedRuns>(run_places(cwd, environment));
  const std::string path = absolute_path(what);
  const bool run = holds_run(path) || segment_folder_of(path).has_value();
  if (is_folder(path) && !run) return std::make_unique<ServedRuns>(std::vector<std::string>{path});
  auto folder = resolve_run(what, cwd, environment);
  if (!folder) return folder.error();
  return std::make_unique<ServedRuns>(*folder);
}

// Ends with the run that it is the page of.
class Ending {
 public:
  explicit Ending(std::string segments) : segments_(std::move(segments)) {}

  bool is_due(web::Server& server, int64_t now_ns) {
    if (segments_.empty()) return false;
    if (over_ns_ == 0 && !is_folder(segments_)) {
      over_ns_ = now_ns;
      server.last_push();
    }
    if (over_ns_ != 0)
      return (server.viewers() == 0 && !server.pushing()) || now_ns - over_ns_ > kGoodbyeNs;
    const bool anybody = agent_alive(segments_) || any_process_alive(segments_);
    if (anybody || lost_ns_ == 0) lost_ns_ = now_ns;
    return now_ns - lost_ns_ > kLostNs;
  }

 private:
  std::string segments_;
  int64_t over_ns_ = 0, lost_ns_ = 0;
};

int serve_until_told(ServedRuns& runs, const ServePlan& plan, Fd listening, const std::string& of) {
  auto tls = tls_of(plan);
  if (!tls) return wrong_use(tls.error());
  const sigset_t stopping = block_stopping_signals();
  raise_descriptor_limit();
  web::Server server({.access = web::Access(plan.token, plan.hosts, plan.listen.tls),
                      .page = web::Page::load(find_page_folder(own_path(), current_environment())),
                      .tls = std::move(*tls)},
                     std::move(listening), runs);
  if (!plan.rank_metrics) runs.leave_out_rank_metrics();
  const int64_t began_ns = wall_ns();
  for (const web::PushTarget& target : plan.pushes)
    server.push(
        target,
        [&runs, kind = target.kind, began_ns] {
          const auto families = runs.metrics(true);
          return kind == web::PushTarget::Kind::kOtlp
                     ? web::otlp(families, began_ns, wall_ns())
                     : web::remote_write(families, wall_ns() / 1'000'000);
        },
        [](const std::string& notice) { say(notice); });
  Ending ending(of);
  server.every(kTick, [&] {
    if (is_told_to_stop(stopping) || ending.is_due(server, monotonic_ns())) server.stop();
  });
  server.run();
  // At once: a thread may still look up the name of a receiver, or ask an agent that was stopped.
  ::_exit(kFine);
}

int serve_own_run(const ServeOptions& options) {
  ::prctl(PR_SET_NAME, "stepscope");
  ::setsid();
  ::setpriority(PRIO_PROCESS, 0, std::min(::getpriority(PRIO_PROCESS, 0) + kNice, 19));
  const auto info = read_run_info(options.of);
  auto plan = check_serve_flags(options.flags);
  if (!plan || !info) return kWrongUse;
  plan->token = token_from_stdin();
  if (plan->token.empty()) plan->token = web::make_token();  // it only sends
  ServedRuns runs(info->folder);
  return serve_until_told(runs, *plan, Fd(options.listen_fd), options.of);
}

int serve(const ServeOptions& options) {
  if (!options.of.empty()) return serve_own_run(options);
  const auto plan = check_serve_flags(options.flags);
  if (!plan) return wrong_use(plan.error());
  const int64_t deadline = monotonic_ns() + kFinishNs;
  for (const std::string& problem :
       finish_dead_runs([&] { return monotonic_ns() < deadline; }).problems)
    say(problem);
  auto runs = what_is_served(options.what);
  if (!runs) return wrong_use(runs.error());
  auto listening = web::listen_on(plan->listen);
  if (!listening) return wrong_use(listening.error());
  say("page: " + page_url(*plan, web::port_of(*listening)));
  return serve_until_told(**runs, *plan, std::move(*listening), "");
}

}  // namespace

void add_serve(CLI::App& app, Action& action) {
  const auto options = std::make_shared<ServeOptions>();
  CLI::App* serve_app = app.add_subcommand("serve", "Show runs in the browser, live ones too");
  serve_app->footer(
      "The address goes to stderr, with a token of its own unless --token-file has one. It works\n"
      "through `ssh -L PORT:127.0.0.1:PORT HOST` too. Scripts send Authorization: Bearer TOKEN.\n"
      "SIGTERM or ^C ends it.");
  serve_app->add_option("WHAT", options->what,
                        "Folder that holds runs, or one run by folder, name or id (default: "
                        "./stepscope-runs)");
  add_listen_flags(*serve_app, options->flags);
  add_token_and_tls_flags(*serve_app, options->flags);
  add_metrics_flags(*serve_app, options->flags);
  serve_app->add_option("--of", options->of)->group("");  // of run --serve
  serve_app->add_option("--listen-fd", options->listen_fd)->group("");
  serve_app->callback([&action, options] { action = [options] { return serve(*options); }; });
}

}  // namespace stepscope::cli
