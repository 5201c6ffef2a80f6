#include "web/access.h"

#include <algorithm>

#include "base/text.h"
#include "hub/protocol.h"
#include "hub/token.h"
#include "serve/request.h"

namespace stepscope::web {
namespace {

constexpr size_t kTokenBytes = 32, kShortId = 8, kMaxHost = 253;
constexpr std::string_view kBearer = "bearer ";

bool same_letters(std::string_view a, std::string_view b) { return lower_case(a) == lower_case(b); }

// HOST, HOST:PORT, [V6], [V6]:PORT: the host in lower case; empty when it is none of these.
std::string without_port(std::string_view text) {
  std::string_view host = text, port;
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string_view::npos) return "";
    host = text.substr(1, end - 1);
    const std::string_view rest = text.substr(end + 1);
    if (!rest.empty() && (rest[0] != ':' || rest.size() == 1)) return "";
    if (!rest.empty()) port = rest.substr(1);
  } else if (const size_t colon = text.find(':'); colon != std::string_view::npos) {
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
    if (port.empty()) return "";
  }
  if (!port.empty() && !parse_number<uint16_t>(port)) return "";
  return lower_case(host);
}

std::string url_safe(std::string_view bytes) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string out;
  uint32_t bits = 0;
  int have = 0;
  for (const char c : bytes) {
    bits = bits << 8 | static_cast<unsigned char>(c);
    for (have += 8; have >= 6; have -= 6) out += kLetters[bits >> (have - 6) & 63];
  }
  if (have > 0) out += kLetters[bits << (6 - have) & 63];
  return out;
}

}  // namespace

Access::Access(std::string token, std::vector<std::string> hosts, bool secure)
    : token_(std::move(token)), hosts_(std::move(hosts)), secure_(secure) {
  hosts_.insert(hosts_.end(), {"127.0.0.1", "localhost", "::1"});
  cookie_name_ = "stepscope-" + hub::hex(hub::sha256("name " + token_)).substr(0, kShortId);
  // Not the token itself: a browser's store of cookies is no place for what scripts use too.
  cookie_ = hub::hex(hub::sha256("cookie " + token_));
}

bool Access::host_fits(const Credentials& from) const {
  const std::string host = without_port(from.host);
  return !host.empty() && std::find(hosts_.begin(), hosts_.end(), host) != hosts_.end();
}

bool Access::origin_fits(const Credentials& from) const {
  if (from.origin.empty()) return true;
  const std::string_view scheme = secure_ ? "https://" : "http://";
  return from.origin.size() > scheme.size() &&
         same_letters(from.origin.substr(0, scheme.size()), scheme) &&
         same_letters(from.origin.substr(scheme.size()), from.host);
}

bool Access::has_cookie_or_bearer(const Credentials& from) const {
  const std::string_view given = from.authorization;
  if (given.size() > kBearer.size() && same_letters(given.substr(0, kBearer.size()), kBearer) &&
      hub::equal_in_constant_time(trim(given.substr(kBearer.size())), token_))
    return true;
  for (const std::string_view part : split(from.cookie, ';')) {
    const std::string_view pair = trim(part);
    const size_t equals = pair.find('=');
    if (equals == std::string_view::npos || pair.substr(0, equals) != cookie_name_) continue;
    if (hub::equal_in_constant_time(pair.substr(equals + 1), cookie_)) return true;
  }
  return false;
}

bool Access::has_token_in_query(const Credentials& from) const {
  constexpr std::string_view kRoot = "/?";
  if (!from.target.starts_with(kRoot)) return false;
  const auto words = serve::query_words(from.target.substr(kRoot.size()));
  const auto token = words.find("token");
  return token != words.end() && hub::equal_in_constant_time(token->second, token_);
}

std::string Access::set_cookie() const {
  return cookie_name_ + "=" + cookie_ + "; Path=/; HttpOnly; SameSite=Strict" +
         (secure_ ? "; Secure" : "");
}

std::string make_token() {
  const std::string bytes = hub::make_nonce();
  static_assert(kTokenBytes == hub::kNonceBytes);
  return bytes.empty() ? "" : url_safe(bytes);
}

Result<std::string> parse_host_name(std::string_view text) {
  std::string_view host = text;
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const bool fine =
      !host.empty() && host.size() <= kMaxHost && std::all_of(host.begin(), host.end(), [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               c == '-' || c == '.' || c == ':' || c == '_';
      });
  if (!fine)
    return Error{"--allow-host " + shell_quote(printable(text, 200)) + " is not a host's name",
                 "the name that stands in the browser's address, without port: --allow-host node7"};
  return lower_case(host);
}

}  // namespace stepscope::web
