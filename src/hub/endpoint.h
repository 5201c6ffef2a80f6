// Where a hub is: ADDR:PORT to listen on, or a URL to connect to.
//
// Thread safety: pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace stepscope::hub {

struct Endpoint {
  std::string host;  // name or address, without brackets
  uint16_t port = 0;
  bool tls = false;
};

inline constexpr uint16_t kDefaultPort = 7077;

Result<Endpoint> parse_listen(std::string_view text);  // ADDR:PORT or [ADDR]:PORT
Result<Endpoint> parse_url(std::string_view text);     // http(s)://HOST[:PORT][/]
std::string url_of(const Endpoint& endpoint);

}  // namespace stepscope::hub
