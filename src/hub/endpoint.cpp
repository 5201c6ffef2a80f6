#include "hub/endpoint.h"

#include <optional>

#include "base/text.h"

namespace stepscope::hub {
namespace {

// HOST, HOST:PORT, [V6]:PORT; port 0 where none was given.
std::optional<Endpoint> host_and_port(std::string_view text) {
  Endpoint out;
  std::string_view port;
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    out.host = text.substr(1, end - 1);
    port = text.substr(end + 1);
    if (!port.empty() && !port.starts_with(':')) return std::nullopt;
    if (!port.empty()) port.remove_prefix(1);
  } else {
    const size_t colon = text.find(':');
    out.host = text.substr(0, colon);
    if (colon != std::string_view::npos) port = text.substr(colon + 1);
  }
  if (out.host.empty() || out.host.find_first_of(" \t/@\"\\") != std::string::npos)
    return std::nullopt;
  if (port.empty()) return out;
  const auto number = parse_number<uint16_t>(port);
  if (!number) return std::nullopt;
  out.port = *number;
  return out;
}

}  // namespace

Result<Endpoint> parse_listen(std::string_view text) {
  const auto out = host_and_port(text);
  if (!out || text.find(':') == std::string_view::npos)
    return Error{shell_quote(printable(text, 200)) + " is not ADDR:PORT",
                 "for example: --listen 0.0.0.0:7077"};
  return *out;
}

Result<Endpoint> parse_url(std::string_view text) {
  std::string_view rest = text;
  bool tls = false;
  if (rest.starts_with("https://")) {
    tls = true;
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
  } else {
    rest = {};
  }
  if (rest.ends_with('/')) rest.remove_suffix(1);
  auto out = host_and_port(rest);
  if (!out || (out->port == 0 && rest.ends_with(":0")))
    return Error{shell_quote(printable(text, 200)) + " is not the URL of a hub",
                 "for example: --hub https://head:7077"};
  if (out->port == 0) out->port = kDefaultPort;
  out->tls = tls;
  return *out;
}

std::string url_of(const Endpoint& endpoint) {
  const bool v6 = endpoint.host.find(':') != std::string::npos;
  return (endpoint.tls ? "https://" : "http://") +
         (v6 ? "[" + endpoint.host + "]" : endpoint.host) + ":" + std::to_string(endpoint.port);
}

}  // namespace stepscope::hub
