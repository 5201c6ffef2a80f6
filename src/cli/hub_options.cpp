#include "cli/hub_options.h"

#include "base/file.h"
#include "base/text.h"
#include "hub/endpoint.h"
#include "hub/tls.h"
#include "hub/token.h"

namespace stepscope::cli {
namespace {

using Map = std::map<std::string, std::string>;

Result<Map> check_hub(const HubFlags& flags) {
  const auto endpoint = hub::parse_url(flags.hub);
  if (!endpoint) return endpoint.error();
  if (!flags.tls_cert.empty() || !flags.tls_key.empty())
    return Error{"--tls-cert and --tls-key are the hub's", "use --ca or --pin on a node"};
  if (!endpoint->tls && (!flags.ca.empty() || !flags.pin.empty()))
    return Error{"--ca and --pin are for https, and the hub's URL says http",
                 "--hub https://" + flags.hub.substr(flags.hub.find("//") + 2)};
  Map out{{"url", hub::url_of(*endpoint)}};
  if (!flags.pin.empty()) {
    const auto pin = hub::parse_pin(flags.pin);
    if (!pin) return pin.error();
    out["pin"] = *pin;
  }
  if (!flags.ca.empty()) {
    out["ca"] = absolute_path(flags.ca);
    if (const auto tls = hub::make_node_tls({.ca_file = out["ca"], .pin = ""}, *endpoint); !tls)
      return tls.error();
  }
  return out;
}

Result<Map> check_listen(const HubFlags& flags) {
  auto endpoint = hub::parse_listen(flags.hub_listen);
  if (!endpoint) return endpoint.error();
  if (endpoint->port == 0)
    return Error{"--hub-listen needs a port that the other nodes know",
                 "for example: --hub-listen 0.0.0.0:7077"};
  if (!flags.ca.empty() || !flags.pin.empty())
    return Error{"--ca and --pin are for nodes that connect with --hub", ""};
  if (flags.tls_cert.empty() != flags.tls_key.empty())
    return Error{"--tls-cert and --tls-key go together", "give both, or neither"};
  Map out{{"listen", flags.hub_listen}};
  if (!flags.tls_cert.empty()) {
    const auto pin = hub::pin_of(flags.tls_cert);
    if (!pin) return pin.error();
    out["pin"] = *pin;
    out["tls_cert"] = absolute_path(flags.tls_cert);
    out["tls_key"] = absolute_path(flags.tls_key);
    endpoint->tls = true;
  }
  if (endpoint->host == "0.0.0.0") endpoint->host = "127.0.0.1";
  if (endpoint->host == "::") endpoint->host = "::1";
  out["url"] = hub::url_of(*endpoint);
  return out;
}

}  // namespace

void add_node_flags(CLI::App& app, HubFlags& flags) {
  app.add_option("--hub", flags.hub, "Join the other nodes of the run at this hub")
      ->option_text("URL");
  app.add_option("--token-file", flags.token_file, "File (mode 600) with the token of hub and page")
      ->option_text("FILE");
  app.add_option("--ca", flags.ca, "Who signed the hub's certificate, PEM")->option_text("FILE");
  app.add_option("--pin", flags.pin, "SHA-256 fingerprint of the hub's certificate")
      ->option_text("SHA256");
}

void add_hub_flags(CLI::App& run_app, HubFlags& flags) {
  add_node_flags(run_app, flags);
  run_app.add_option("--hub-listen", flags.hub_listen, "Hold the hub on this node")
      ->option_text("ADDR:PORT");
  run_app
      .add_option("--tls-cert", flags.tls_cert,
                  "With --hub-listen or --serve: the certificate, PEM")
      ->option_text("FILE");
  run_app.add_option("--tls-key", flags.tls_key, "With --hub-listen or --serve: its key, PEM")
      ->option_text("FILE");
}

Result<Map> check_hub_flags(const HubFlags& flags) {
  if (flags.hub.empty() && flags.hub_listen.empty()) {
    if (flags.token_file.empty() && flags.ca.empty() && flags.pin.empty() &&
        flags.tls_cert.empty() && flags.tls_key.empty())
      return Map{};
    return Error{"--token-file, --ca, --pin and --tls-... go with --hub, --hub-listen or --serve",
                 "for example: --hub https://head:7077"};
  }
  if (!flags.hub.empty() && !flags.hub_listen.empty())
    return Error{"--hub and --hub-listen exclude each other",
                 "--hub-listen on the node that holds the hub, --hub on the others"};
  if (flags.token_file.empty())
    return Error{"a hub needs --token-file",
                 "the same file as the hub's: (umask 077; openssl rand -hex 32 > token)"};
  const std::string token_file = absolute_path(flags.token_file);
  if (const auto token = hub::read_token(token_file); !token) return token.error();
  auto out = flags.hub.empty() ? check_listen(flags) : check_hub(flags);
  if (out) (*out)["token_file"] = token_file;
  return out;
}

Result<hub::LinkOptions> link_options(const Map& hub) {
  const auto value = [&](const char* key) {
    const auto found = hub.find(key);
    return found == hub.end() ? std::string() : found->second;
  };
  const auto endpoint = hub::parse_url(value("url"));
  if (!endpoint) return endpoint.error();
  auto token = hub::read_token(value("token_file"));
  if (!token) return token.error();
  hub::LinkOptions options{.hub = *endpoint, .token = std::move(*token), .tls = {}, .join = {}};
  if (!endpoint->tls) return options;
  auto tls = hub::make_node_tls({.ca_file = value("ca"), .pin = value("pin")}, *endpoint);
  if (!tls) return tls.error();
  options.tls = std::move(*tls);
  return options;
}

}  // namespace stepscope::cli
