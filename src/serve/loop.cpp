#include "serve/loop.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <list>

#include "base/text.h"

namespace stepscope::serve {
namespace asio = boost::asio;
namespace http = boost::beast::http;
using Local = asio::local::stream_protocol;
using Stream = boost::beast::basic_stream<Local, asio::io_context::executor_type>;

namespace {

constexpr auto kNoThrow = asio::as_tuple(asio::use_awaitable);

bool same_user(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == ::geteuid() || peer.uid == 0;
}

http::response<http::string_body> answer(const Request& request, const Handler& handler) {
  Reply reply = handler(request);
  http::response<http::string_body> response(static_cast<http::status>(reply.status), 11);
  response.set(http::field::content_type, reply.content_type);
  response.set(http::field::cache_control, "no-store");
  response.keep_alive(false);
  response.body() = std::move(reply.body);
  response.prepare_payload();
  return response;
}

}  // namespace

struct Loop::Impl {
  asio::io_context io{1};
  asio::io_context::executor_type executor = io.get_executor();
  asio::steady_timer timer{io};
  asio::basic_socket_acceptor<Local, asio::io_context::executor_type> acceptor{executor};
  std::list<asio::posix::stream_descriptor> watched;
  std::string path;
  Handler handler;
  int connections = 0;

  ~Impl() {
    for (auto& descriptor : watched) descriptor.release();  // the caller's
    if (!path.empty()) ::unlink(path.c_str());
  }

  void watch(asio::posix::stream_descriptor& descriptor) {
    descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                          [this, &descriptor](const boost::system::error_code& error) {
                            if (error) return;
                            io.stop();
                            watch_again.push_back(&descriptor);
                          });
  }
  std::vector<asio::posix::stream_descriptor*>
      watch_again;  // once the caller has read what woke it

  asio::awaitable<void> serve(Stream stream) {
    boost::beast::flat_buffer buffer(kMaxHeaderBytes + kMaxBodyBytes);
    http::request_parser<http::string_body> parser;
    parser.header_limit(kMaxHeaderBytes);
    parser.body_limit(kMaxBodyBytes);
    stream.expires_after(kRequestTime);
    const auto [error, read] = co_await http::async_read(stream, buffer, parser, kNoThrow);
    if (!error) {
      const auto& message = parser.get();
      const Request request{std::string(message.method_string()), std::string(message.target()),
                            message.body()};
      auto response = answer(request, handler);
      co_await http::async_write(stream, response, kNoThrow);
      boost::system::error_code ignored;
      stream.socket().shutdown(Local::socket::shutdown_send, ignored);
    }
    --connections;
    accept_next();
  }

  bool accepting = false;
  void accept_next() {
    if (accepting || connections >= kMaxConnections) return;
    accepting = true;
    acceptor.async_accept(executor, [this](const boost::system::error_code& error, auto socket) {
      accepting = false;
      if (error == asio::error::operation_aborted) return;
      if (error) {  // out of descriptors: try again with the next wait, not at once
        retry_accept = true;
        return;
      }
      if (same_user(socket.native_handle())) {
        ++connections;
        asio::co_spawn(executor, serve(Stream(std::move(socket))), asio::detached);
      }
      accept_next();
    });
  }
  bool retry_accept = false;
};

Loop::Loop() : impl_(std::make_unique<Impl>()) {}
Loop::~Loop() = default;
Loop::Loop(Loop&&) noexcept = default;
Loop& Loop::operator=(Loop&&) noexcept = default;

Status Loop::listen(const std::string& path, Handler handler) {
  const auto fail = [&](const std::string& why) {
    return Error{"cannot listen on " + path + ": " + why, ""};
  };
  sockaddr_un address{};
  if (path.size() >= sizeof address.sun_path) return fail("the path is too long for a socket");
  boost::system::error_code error;
  auto& acceptor = impl_->acceptor;
  ::unlink(path.c_str());  // of an agent that was killed; this one holds agent.lock
  if (acceptor.open(Local(), error); error) return fail(error.message());
  const mode_t before = ::umask(0177);
  acceptor.bind(Local::endpoint(path), error);
  ::umask(before);
  if (error) return fail(error.message());
  if (acceptor.listen(kMaxConnections, error); error) return fail(error.message());
  impl_->path = path;
  impl_->handler = std::move(handler);
  impl_->accept_next();
  return ok();
}

void Loop::wake_on(int fd) { impl_->watch(impl_->watched.emplace_back(impl_->io, fd)); }

void Loop::wait(std::chrono::milliseconds time) {
  Impl& impl = *impl_;
  for (auto* descriptor : impl.watch_again) impl.watch(*descriptor);
  impl.watch_again.clear();
  if (std::exchange(impl.retry_accept, false)) impl.accept_next();
  impl.timer.expires_after(time);
  impl.timer.async_wait([&impl](const boost::system::error_code& failed) {
    if (!failed) impl.io.stop();
  });
  impl.io.restart();
  impl.io.run();
}

}  // namespace stepscope::serve
