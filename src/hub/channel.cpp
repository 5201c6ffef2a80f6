#include "hub/channel.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/ssl.hpp>
#include <boost/beast/websocket.hpp>
#include <boost/beast/websocket/ssl.hpp>
#include <deque>
#include <type_traits>

#include "hub/protocol.h"

namespace stepscope::hub {
namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace websocket = beast::websocket;
namespace {

using Tcp = beast::tcp_stream;
using Tls = beast::ssl_stream<beast::tcp_stream>;
constexpr auto kNoThrow = asio::as_tuple(asio::use_awaitable);
constexpr const char* kPath = "/stepscope/hub";
constexpr uint32_t kMaxHttpBytes = 8192;

std::string words(const boost::system::error_code& error) {
  if (error == websocket::error::closed) return "it hung up";
  if (error == asio::error::eof || error == asio::ssl::error::stream_truncated)
    return "it hung up without a word";
  if (error == beast::error::timeout) return "no answer in time";
  if (error == websocket::error::message_too_big) return "it sent a message that is too large";
  if (error == asio::error::operation_aborted) return "closed";
  return error.message();
}

template <typename Stream>
class Socket final : public Channel, public std::enable_shared_from_this<Socket<Stream>> {
 public:
  template <typename... Arguments>
  explicit Socket(asio::io_context& io, Arguments&&... arguments)
      : io_(io), stream_(std::forward<Arguments>(arguments)...) {
    stream_.binary(true);
    limit_message(kMaxHandshakeBytes);
  }

  asio::awaitable<Status> accept() override {
    const auto self = this->shared_from_this();
    lowest().expires_after(kHandshakeTime);
    if constexpr (std::is_same_v<Stream, Tls>) {
      const auto [error] =
          co_await stream_.next_layer().async_handshake(asio::ssl::stream_base::server, kNoThrow);
      if (error) co_return Error{"TLS failed: " + words(error), ""};
    }
    beast::flat_buffer buffer(kMaxHttpBytes);
    http::request_parser<http::empty_body> request;
    request.header_limit(kMaxHttpBytes);
    const auto [unread, size] =
        co_await http::async_read(stream_.next_layer(), buffer, request, kNoThrow);
    if (unread) co_return Error{"it does not speak HTTP: " + words(unread), ""};
    if (!websocket::is_upgrade(request.get()) || request.get().target() != kPath) {
      http::response<http::string_body> response(http::status::not_found, 11);
      response.keep_alive(false);
      response.body() = "This is a stepscope hub. Nodes join it by: stepscope run --hub URL ...\n";
      response.prepare_payload();
      co_await http::async_write(stream_.next_layer(), response, kNoThrow);
      co_return Error{"it asked for a web page", ""};
    }
    lowest().expires_never();
    set_timeouts();
    const auto [error] = co_await stream_.async_accept(request.get(), kNoThrow);
    if (error) co_return Error{"no WebSocket came about: " + words(error), ""};
    co_return ok();
  }

  asio::awaitable<Status> connect(const Endpoint& hub) override {
    const auto self = this->shared_from_this();
    asio::ip::tcp::resolver resolver(io_);
    const auto [unresolved, results] =
        co_await resolver.async_resolve(hub.host, std::to_string(hub.port), kNoThrow);
    if (unresolved) co_return Error{"its name is not known: " + words(unresolved), ""};
    lowest().expires_after(kHandshakeTime);
    const auto [unconnected, endpoint] = co_await lowest().async_connect(results, kNoThrow);
    if (unconnected) co_return Error{words(unconnected), ""};
    boost::system::error_code ignored;
    lowest().socket().set_option(asio::ip::tcp::no_delay(true), ignored);
    if constexpr (std::is_same_v<Stream, Tls>) {
      if (!SSL_set_tlsext_host_name(stream_.next_layer().native_handle(), hub.host.c_str()))
        co_return Error{"TLS cannot be set up", ""};
      const auto [error] =
          co_await stream_.next_layer().async_handshake(asio::ssl::stream_base::client, kNoThrow);
      if (error) co_return Error{"TLS failed: " + words(error), ""};
    }
    lowest().expires_never();
    set_timeouts();
    const auto [error] = co_await stream_.async_handshake(hub.host, kPath, kNoThrow);
    if (error == websocket::error::upgrade_declined)
      co_return Error{"what answers there is no hub", ""};
    if (error) co_return Error{words(error), ""};
    co_return ok();
  }

  asio::awaitable<Result<std::string>> read() override {
    const auto self = this->shared_from_this();
    std::string message;
    auto buffer = asio::dynamic_buffer(message);
    const auto [error, size] = co_await stream_.async_read(buffer, kNoThrow);
    if (error) co_return Error{words(error), ""};
    co_return message;
  }

  void send(std::string message) override {
    if (closed_) return;
    queued_ += message.size();
    if (queued_ > kMaxQueued) return close();
    queue_.push_back(std::move(message));
    if (writing_) return;
    writing_ = true;
    asio::co_spawn(io_, write_all(this->shared_from_this()), asio::detached);
  }

  size_t queued_bytes() const override { return queued_; }
  void limit_message(size_t bytes) override { stream_.read_message_max(bytes); }

  asio::awaitable<void> finish() override {
    const auto self = this->shared_from_this();
    asio::steady_timer pause(io_);
    while (!closed_ && (writing_ || !queue_.empty())) {
      pause.expires_after(std::chrono::milliseconds(10));
      co_await pause.async_wait(kNoThrow);
    }
    if (closed_) co_return;
    closed_ = true;
    co_await stream_.async_close(websocket::close_code::normal, kNoThrow);
    close();
  }

  void close() override {
    closed_ = true;
    lowest().close();
  }

 private:
  Tcp& lowest() { return beast::get_lowest_layer(stream_); }

  void set_timeouts() {
    stream_.set_option(websocket::stream_base::timeout{
        .handshake_timeout = kHandshakeTime, .idle_timeout = kIdleTime, .keep_alive_pings = true});
  }

  static asio::awaitable<void> write_all(std::shared_ptr<Socket> self) {
    while (!self->queue_.empty() && !self->closed_) {
      const std::string message = std::move(self->queue_.front());
      self->queue_.pop_front();
      const auto [error, size] =
          co_await self->stream_.async_write(asio::buffer(message), kNoThrow);
      self->queued_ -= std::min(self->queued_, message.size());
      if (error) self->close();
    }
    self->writing_ = false;
  }

  asio::io_context& io_;
  websocket::stream<Stream> stream_;
  std::deque<std::string> queue_;
  size_t queued_ = 0;
  bool writing_ = false, closed_ = false;
};

}  // namespace

std::shared_ptr<Channel> make_channel(asio::io_context& io, asio::ip::tcp::socket socket,
                                      const TlsContext& tls) {
  if (tls) return std::make_shared<Socket<Tls>>(io, std::move(socket), *tls);
  return std::make_shared<Socket<Tcp>>(io, std::move(socket));
}

}  // namespace stepscope::hub
