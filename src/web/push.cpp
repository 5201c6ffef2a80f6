#include "web/push.h"

#include <openssl/evp.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>

#include "base/text.h"
#include "base/version.h"
#include "web/on_pool.h"

namespace stepscope::web {
namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace {

constexpr auto kNoThrow = asio::as_tuple(asio::use_awaitable);
constexpr uint64_t kMaxReply = 64 * 1024;

std::string base64(const std::string& text) {
  std::string out((text.size() + 2) / 3 * 4 + 1, '\0');  // with the 0 that it ends by
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()));
  out.resize(static_cast<size_t>(size));
  return out;
}

http::request<http::string_body> request_of(const PushTarget& target, std::string body) {
  http::request<http::string_body> request(http::verb::post, target.path, 11);
  const bool v6 = target.where.host.find(':') != std::string::npos;
  request.set(http::field::host, (v6 ? "[" + target.where.host + "]" : target.where.host) + ":" +
                                     std::to_string(target.where.port));
  request.set(http::field::user_agent, std::string("stepscope/") + kVersion);
  request.set(http::field::content_type, "application/x-protobuf");
  if (target.kind == PushTarget::Kind::kRemoteWrite) {
    request.set(http::field::content_encoding, "snappy");
    request.set("X-Prometheus-Remote-Write-Version", "0.1.0");
  }
  if (!target.user.empty()) request.set(http::field::authorization, "Basic " + base64(target.user));
  request.keep_alive(false);
  request.body() = std::move(body);
  request.prepare_payload();
  return request;
}

template <typename Stream>
asio::awaitable<Status> post(Stream& stream, http::request<http::string_body> request) {
  const auto [unsent, written] = co_await http::async_write(stream, request, kNoThrow);
  if (unsent) co_return Error{unsent.message(), ""};
  beast::flat_buffer buffer;
  http::response_parser<http::string_body> reply;
  reply.body_limit(kMaxReply);
  const auto [unread, size] = co_await http::async_read(stream, buffer, reply, kNoThrow);
  if (unread) co_return Error{unread.message(), ""};
  const int status = static_cast<int>(reply.get().result_int());
  if (status / 100 != 2) co_return Error{"it answers with status " + std::to_string(status), ""};
  co_return ok();
}

}  // namespace

Result<PushTarget> parse_push_url(PushTarget::Kind kind, std::string_view url) {
  PushTarget target;
  target.kind = kind;
  const size_t scheme = url.find("://");
  std::string_view rest = scheme == std::string_view::npos ? "" : url.substr(scheme + 3);
  const size_t slash = rest.find('/');
  target.path = slash == std::string_view::npos ? "/" : std::string(rest.substr(slash));
  std::string_view authority = rest.substr(0, slash);
  if (const size_t sign = authority.rfind('@'); sign != std::string_view::npos) {
    target.user = authority.substr(0, sign);
    authority = authority.substr(sign + 1);
  }
  const std::string plain =
      std::string(url.substr(0, scheme == std::string_view::npos ? 0 : scheme + 3)) +
      std::string(authority);
  auto where = hub::parse_url(plain);
  const bool fine =
      where && !authority.empty() && target.path.find_first_of(" \t\r\n") == std::string::npos;
  if (!fine)
    return Error{"cannot send metrics to " + shell_quote(printable(plain, 200)) + ": it is no URL",
                 kind == PushTarget::Kind::kOtlp
                     ? "for example: --otlp http://collector:4318"
                     : "for example: --remote-write http://prometheus:9090/api/v1/write"};
  target.where = *where;
  if (!authority.ends_with(":" + std::to_string(where->port)))  // none was given: the scheme's own
    target.where.port = where->tls ? 443 : 80;
  if (kind == PushTarget::Kind::kOtlp && target.path == "/") target.path = "/v1/metrics";
  target.shown = hub::url_of(target.where) + target.path;
  return target;
}

Push::Push(PushTarget target, std::function<std::string()> body,
           std::function<void(const std::string&)> say)
    : target_(std::move(target)), body_(std::move(body)), say_(std::move(say)) {}

asio::awaitable<Status> Push::send(asio::io_context& io, std::string body) {
  asio::ip::tcp::resolver resolver(io);
  const auto [unknown, found] = co_await resolver.async_resolve(
      target_.where.host, std::to_string(target_.where.port), kNoThrow);
  if (unknown) co_return Error{unknown.message(), ""};
  auto request = request_of(target_, std::move(body));
  if (!target_.where.tls) {
    beast::tcp_stream stream(io);
    stream.expires_after(kPatience);
    const auto [refused, endpoint] = co_await stream.async_connect(found, kNoThrow);
    if (refused) co_return Error{refused.message(), ""};
    co_return co_await post(stream, std::move(request));
  }
  const auto tls = hub::make_node_tls({}, target_.where);
  if (!tls) co_return tls.error();
  beast::ssl_stream<beast::tcp_stream> stream(io, **tls);
  beast::get_lowest_layer(stream).expires_after(kPatience);
  const auto [refused, endpoint] =
      co_await beast::get_lowest_layer(stream).async_connect(found, kNoThrow);
  if (refused) co_return Error{refused.message(), ""};
  if (!SSL_set_tlsext_host_name(stream.native_handle(), target_.where.host.c_str()))
    co_return Error{"TLS cannot be set up", ""};
  const auto [untrusted] =
      co_await stream.async_handshake(asio::ssl::stream_base::client, kNoThrow);
  if (untrusted) co_return Error{"TLS failed: " + untrusted.message(), ""};
  co_return co_await post(stream, std::move(request));
}

asio::awaitable<void> Push::run(asio::io_context& io, asio::thread_pool& pool) {
  asio::steady_timer timer(io);
  wake_ = [&timer] { timer.cancel(); };
  while (true) {
    const bool last = stopping_;
    std::string body = co_await on_pool<std::string>(pool, body_);
    const Status sent = co_await send(io, std::move(body));
    if (!sent && !std::exchange(failed_, true))
      say_("cannot send metrics to " + target_.shown + ": " + sent.error().message +
           "; it is tried again every " + std::to_string(kEvery.count()) + " s");
    if (last) break;
    if (!stopping_) {
      timer.expires_after(kEvery);
      co_await timer.async_wait(kNoThrow);
    }
  }
  wake_ = nullptr;
  over_ = true;
}

void Push::stop() {
  stopping_ = true;
  if (wake_) wake_();
}

}  // namespace stepscope::web
