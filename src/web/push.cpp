#include "web/push.h"

#include <openssl/evp.h>

#include <boost/asio/steady_timer.hpp>
#include <boost/beast/http.hpp>

#include "base/text.h"
#include "web/http_client.h"
#include "web/no_throw.h"
#include "web/on_pool.h"

namespace stepscope::web {
namespace asio = boost::asio;
namespace http = boost::beast::http;
namespace {

std::string base64(const std::string& text) {
  std::string out((text.size() + 2) / 3 * 4 + 1, '\0');  // with the 0 that it ends by
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()));
  out.resize(static_cast<size_t>(size));
  return out;
}

ClientRequest request_of(const PushTarget& target, std::string body) {
  ClientRequest request(http::verb::post, target.path, 11);
  request.set(http::field::content_type, "application/x-protobuf");
  if (target.kind == PushTarget::Kind::kRemoteWrite) {
    request.set(http::field::content_encoding, "snappy");
    request.set("X-Prometheus-Remote-Write-Version", "0.1.0");
  }
  if (!target.user.empty()) request.set(http::field::authorization, "Basic " + base64(target.user));
  request.body() = std::move(body);
  return request;
}

}  // namespace

Result<PushTarget> parse_push_url(PushTarget::Kind kind, std::string_view text) {
  const bool is_otlp = kind == PushTarget::Kind::kOtlp;
  auto url = parse_url(text);
  if (!url) {
    const size_t sign = text.rfind('@');  // what stands before it is secret
    const std::string_view shown = sign == std::string_view::npos ? text : text.substr(sign + 1);
    return Error{"cannot send metrics to " + shell_quote(printable(shown, 200)) + ": it is no URL",
                 is_otlp ? "for example: --otlp http://collector:4318"
                         : "for example: --remote-write http://prometheus:9090/api/v1/write"};
  }
  PushTarget target{.kind = kind,
                    .where = url->where,
                    .path = std::move(url->path),
                    .user = std::move(url->user),
                    .shown = ""};
  if (is_otlp && target.path == "/") target.path = "/v1/metrics";
  target.shown = hub::url_of(target.where) + target.path;
  if (!url->query.empty()) target.path += "?" + url->query;
  return target;
}

Push::Push(PushTarget target, std::function<std::string()> body,
           std::function<void(const std::string&)> say)
    : target_(std::move(target)), body_(std::move(body)), say_(std::move(say)) {}

asio::awaitable<Status> Push::send(asio::io_context& io, std::string body) {
  hub::TlsContext tls;
  if (target_.where.tls) {
    auto made = hub::make_node_tls({}, target_.where);
    if (!made) co_return made.error();
    tls = std::move(*made);
  }
  auto request = request_of(target_, std::move(body));
  const auto reply =
      co_await exchange(io, target_.where, std::move(request), std::move(tls), {.time = kPatience});
  if (!reply) co_return reply.error();
  if (reply->status / 100 != 2)
    co_return Error{"it answers with status " + std::to_string(reply->status), ""};
  co_return ok();
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
