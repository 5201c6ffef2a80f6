// One request to an HTTP server, plain or TLS: what sends metrics, and what asks a served run.
//
// Thread safety: reentrant. Bounded in time and in the size of the reply; a reply is data.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "hub/endpoint.h"
#include "hub/tls.h"
#include "serve/loop.h"

namespace stepscope::web {

// http(s)://[USER:PASSWORD@]HOST[:PORT][/PATH][?QUERY][#...]
struct Url {
  hub::Endpoint where;      // the scheme's port where none was given
  std::string path, query;  // path: "/" where none was given
  std::string user;         // "USER:PASSWORD", or empty
};
std::optional<Url> parse_url(std::string_view text);

struct Patience {
  std::chrono::milliseconds time{5000};  // once the host's name is known
  uint64_t max_reply_bytes = 64 * 1024;
};
using ClientRequest = boost::beast::http::request<boost::beast::http::string_body>;

// tls: for https; what the server must show. Fills in Host and what goes with the body.
boost::asio::awaitable<Result<serve::Reply>> exchange(boost::asio::io_context& io,
                                                      hub::Endpoint where, ClientRequest request,
                                                      hub::TlsContext tls, Patience patience);

// The same, waited for.
Result<serve::Reply> fetch(const hub::Endpoint& where, ClientRequest request, hub::TlsContext tls,
                           Patience patience);

}  // namespace stepscope::web
