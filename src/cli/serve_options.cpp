#include "cli/serve_options.h"

#include "base/file.h"
#include "base/text.h"
#include "hub/token.h"
#include "web/access.h"

namespace stepscope::cli {

void add_listen_flags(CLI::App& app, ServeFlags& flags) {
  app.add_option("--listen", flags.listen,
                 "Where the page listens (default: 127.0.0.1 and any free port)")
      ->option_text("ADDR:PORT");
  app.add_option("--allow-host", flags.allow_host,
                 "A name that browsers may come by, besides localhost; may be repeated")
      ->option_text("NAME")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void add_token_and_tls_flags(CLI::App& app, ServeFlags& flags) {
  app.add_option("--token-file", flags.token_file,
                 "File (mode 600) with the token; none is printed then")
      ->option_text("FILE");
  app.add_option("--tls-cert", flags.tls_cert, "Certificate, PEM")->option_text("FILE");
  app.add_option("--tls-key", flags.tls_key, "Its key, PEM")->option_text("FILE");
}

void add_metrics_flags(CLI::App& app, ServeFlags& flags) {
  app.add_option("--otlp", flags.otlp, "Send metrics there every 10 s, as OTLP/HTTP")
      ->option_text("URL");
  app.add_option("--remote-write", flags.remote_write,
                 "Send metrics there every 10 s, as Prometheus remote-write")
      ->option_text("URL");
  app.add_flag("--no-rank-metrics", flags.no_rank_metrics, "No metrics of single ranks");
}

Result<ServePlan> check_serve_flags(const ServeFlags& flags) {
  ServePlan plan;
  plan.rank_metrics = !flags.no_rank_metrics;
  using Kind = web::PushTarget::Kind;
  for (const auto& [kind, url] :
       {std::pair(Kind::kOtlp, flags.otlp), std::pair(Kind::kRemoteWrite, flags.remote_write)}) {
    if (url.empty()) continue;
    auto target = web::parse_push_url(kind, url);
    if (!target) return target.error();
    plan.pushes.push_back(std::move(*target));
  }
  plan.listen = {.host = "127.0.0.1", .port = 0, .tls = false};
  if (!flags.listen.empty()) {
    auto listen = hub::parse_listen(flags.listen);
    if (!listen) return listen.error();
    plan.listen = std::move(*listen);
    // Who names the address means it; 0.0.0.0 is no address that a browser goes to.
    if (plan.listen.host != "0.0.0.0" && plan.listen.host != "::")
      if (auto host = web::parse_host_name(plan.listen.host)) plan.hosts.push_back(*host);
  }
  for (const std::string& name : flags.allow_host) {
    auto host = web::parse_host_name(name);
    if (!host) return host.error();
    plan.hosts.push_back(std::move(*host));
  }
  if (flags.token_file.empty()) {
    plan.token = web::make_token();
    if (plan.token.empty()) return Error{"the system gives no random bytes for a token", ""};
  } else {
    auto token = hub::read_token(absolute_path(flags.token_file));
    if (!token) return token.error();
    plan.token = std::move(token->secret);
    plan.token_is_known = true;
  }
  if (flags.tls_cert.empty() != flags.tls_key.empty())
    return Error{"--tls-cert and --tls-key go together", "give both, or neither"};
  if (flags.tls_cert.empty()) return plan;
  plan.tls_cert = absolute_path(flags.tls_cert);
  plan.tls_key = absolute_path(flags.tls_key);
  plan.listen.tls = true;
  if (const auto tls = tls_of(plan); !tls) return tls.error();
  return plan;
}

Result<hub::TlsContext> tls_of(const ServePlan& plan) {
  if (plan.tls_cert.empty()) return hub::TlsContext();
  return hub::make_hub_tls(plan.tls_cert, plan.tls_key);
}

std::string page_url(const ServePlan& plan, uint16_t port) {
  hub::Endpoint here = plan.listen;
  here.port = port;
  if (here.host == "0.0.0.0" || here.host == "::")
    here.host = plan.hosts.empty() ? "127.0.0.1" : plan.hosts.front();
  return hub::url_of(here) + "/" + (plan.token_is_known ? "" : "?token=" + plan.token);
}

}  // namespace stepscope::cli
