#include "web/http_client.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>

#include "base/version.h"
#include "web/no_throw.h"

namespace stepscope::web {
namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace {

constexpr uint16_t kHttp = 80, kHttps = 443;

std::string words(const boost::system::error_code& error) {
  return error == beast::error::timeout ? "no answer in time" : error.message();
}

std::string host_header(const hub::Endpoint& where) {
  const bool v6 = where.host.find(':') != std::string::npos;
  return (v6 ? "[" + where.host + "]" : where.host) + ":" + std::to_string(where.port);
}

template <typename Stream>
asio::awaitable<Result<serve::Reply>> talk(Stream& stream, ClientRequest& request,
                                           uint64_t max_bytes) {
  const auto [unsent, written] = co_await http::async_write(stream, request, kNoThrow);
  if (unsent) co_return Error{words(unsent), ""};
  beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  parser.body_limit(max_bytes);
  const auto [unread, size] = co_await http::async_read(stream, buffer, parser, kNoThrow);
  if (unread) co_return Error{words(unread), ""};
  auto& reply = parser.get();
  co_return serve::Reply{static_cast<int>(reply.result_int()),
                         std::string(reply[http::field::content_type]), std::move(reply.body())};
}

}  // namespace

std::optional<Url> parse_url(std::string_view text) {
  constexpr std::string_view kAfterScheme = "://";
  const size_t scheme = text.find(kAfterScheme);
  if (scheme == std::string_view::npos) return std::nullopt;
  const size_t begin = scheme + kAfterScheme.size();
  std::string_view rest = text.substr(begin);
  rest = rest.substr(0, rest.find('#'));
  const size_t end = rest.find_first_of("/?");
  std::string_view authority = rest.substr(0, end);
  std::string_view target = end == std::string_view::npos ? "" : rest.substr(end);
  Url url;
  if (const size_t sign = authority.rfind('@'); sign != std::string_view::npos) {
    url.user = authority.substr(0, sign);
    authority = authority.substr(sign + 1);
  }
  const auto where = hub::parse_url(std::string(text.substr(0, begin)) + std::string(authority));
  if (!where || target.find_first_of(" \t\r\n") != std::string_view::npos) return std::nullopt;
  url.where = *where;
  if (!authority.ends_with(":" + std::to_string(where->port)))
    url.where.port = where->tls ? kHttps : kHttp;
  const size_t question = target.find('?');
  url.path = target.substr(0, question);
  if (url.path.empty()) url.path = "/";
  if (question != std::string_view::npos) url.query = target.substr(question + 1);
  return url;
}

asio::awaitable<Result<serve::Reply>> exchange(asio::io_context& io, hub::Endpoint where,
                                               ClientRequest request, hub::TlsContext tls,
                                               Patience patience) {
  asio::ip::tcp::resolver resolver(io);
  const auto [unknown, found] =
      co_await resolver.async_resolve(where.host, std::to_string(where.port), kNoThrow);
  if (unknown) co_return Error{words(unknown), ""};
  request.version(11);
  request.set(http::field::host, host_header(where));
  request.set(http::field::user_agent, std::string("stepscope/") + kVersion);
  request.keep_alive(false);
  request.prepare_payload();
  if (!where.tls) {
    beast::tcp_stream stream(io);
    stream.expires_after(patience.time);
    const auto [refused, endpoint] = co_await stream.async_connect(found, kNoThrow);
    if (refused) co_return Error{words(refused), ""};
    co_return co_await talk(stream, request, patience.max_reply_bytes);
  }
  beast::ssl_stream<beast::tcp_stream> stream(io, *tls);
  beast::get_lowest_layer(stream).expires_after(patience.time);
  const auto [refused, endpoint] =
      co_await beast::get_lowest_layer(stream).async_connect(found, kNoThrow);
  if (refused) co_return Error{words(refused), ""};
  if (!SSL_set_tlsext_host_name(stream.native_handle(), where.host.c_str()))
    co_return Error{"TLS cannot be set up", ""};
  const auto [untrusted] =
      co_await stream.async_handshake(asio::ssl::stream_base::client, kNoThrow);
  if (untrusted) co_return Error{"TLS failed: " + words(untrusted), ""};
  co_return co_await talk(stream, request, patience.max_reply_bytes);
}

Result<serve::Reply> fetch(const hub::Endpoint& where, ClientRequest request, hub::TlsContext tls,
                           Patience patience) {
  asio::io_context io{1};
  Result<serve::Reply> out = Error{"no answer", ""};
  const auto ask = [&]() -> asio::awaitable<void> {
    out = co_await exchange(io, where, std::move(request), tls, patience);
  };
  asio::co_spawn(io, ask, asio::detached);
  io.run();
  return out;
}

}  // namespace stepscope::web
