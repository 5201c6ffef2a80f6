// Who may talk to a TCP server: the token, the cookie that stands for it, and the names that a
// browser may have come by (DNS rebinding, cross-site WebSocket).
//
// Thread safety: const after construction. Invariant: nothing here tells how much of a token was
// right, nor keeps what a stranger sent.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stepscope::web {

// What of a request decides. Absent headers are empty.
struct Credentials {
  std::string_view host, origin, cookie, authorization;
  std::string_view target;  // path and query
};

class Access {
 public:
  // hosts: names and addresses besides 127.0.0.1, localhost and [::1], without ports.
  // secure: over TLS, so the cookie is for https alone.
  Access(std::string token, std::vector<std::string> hosts, bool secure);

  // The Host header names this server, with any port (an ssh tunnel has its own), and Origin, where
  // a browser sent one, is the same place.
  bool host_fits(const Credentials& from) const;
  bool origin_fits(const Credentials& from) const;

  bool has_cookie_or_bearer(const Credentials& from) const;
  bool has_token_in_query(const Credentials& from) const;  // of `/?token=...` alone

  // A name of its own for each token: two servers on one host share a browser's cookies.
  const std::string& cookie_name() const { return cookie_name_; }
  std::string set_cookie() const;  // the header's value

 private:
  std::string token_, cookie_name_, cookie_;
  std::vector<std::string> hosts_;
  bool secure_;
};

// 32 random bytes, safe in a URL; empty when the system has none.
std::string make_token();

// A name or address as --allow-host takes it, in lower case and without brackets.
Result<std::string> parse_host_name(std::string_view text);

}  // namespace stepscope::web
