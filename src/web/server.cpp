#include "web/server.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>
#include <boost/beast/websocket/ssl.hpp>
#include <list>
#include <map>
#include <type_traits>

#include "web/feed.h"
#include "web/no_throw.h"
#include "web/on_pool.h"
#include "web/reply.h"

namespace stepscope::web {
namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace websocket = beast::websocket;
using asio::ip::tcp;
namespace {

using Plain = beast::tcp_stream;
// Not Beast's: to clang the teardown of a WebSocket over that is ambiguous (Boost 1.81).
using Tls = asio::ssl::stream<beast::tcp_stream>;
// They wait more than they work: for agents, or for a large run that is read from its file. What needs no more than a
// summary must not stand behind those.
constexpr int kThreads = 8;
constexpr std::chrono::milliseconds kAcceptPause{100}, kClientPause{10};

template <typename Stream>
class Socket final : public Viewer, public std::enable_shared_from_this<Socket<Stream>> {
 public:
  Socket(asio::io_context& io, Stream stream) : io_(io), stream_(std::move(stream)) {}

  asio::awaitable<bool> accept(const http::request<http::string_body>& request) {
    beast::get_lowest_layer(stream_).expires_never();
    stream_.set_option(websocket::stream_base::timeout{.handshake_timeout = Server::kRequestTime,
                                                       .idle_timeout = Server::kIdleTime,
                                                       .keep_alive_pings = true});
    stream_.read_message_max(kMaxClientMessage);
    stream_.text(true);
    const auto [error] = co_await stream_.async_accept(request, kNoThrow);
    co_return !error;
  }

  // Until the peer hangs up. What it says is left unread, and not often.
  asio::awaitable<void> listen() {
    const auto self = this->shared_from_this();
    asio::steady_timer pause(io_);
    while (!closed_) {
      beast::flat_buffer buffer(kMaxClientMessage);
      const auto [error, size] = co_await stream_.async_read(buffer, kNoThrow);
      if (error) break;
      pause.expires_after(kClientPause);
      co_await pause.async_wait(kNoThrow);
    }
    close();
  }

  void tick(const Text& plain, const Text& with_gap) override {
    outbox_.tick(plain, with_gap);
    write();
  }
  void summary(const Text& text) override {
    outbox_.summary(text);
    write();
  }
  void end() override {
    outbox_.end();
    write();
  }
  void close() override {
    closed_ = true;
    beast::get_lowest_layer(stream_).close();
  }

 private:
  void write() {
    if (closed_ || writing_) return;
    writing_ = true;
    asio::co_spawn(io_, write_all(this->shared_from_this()), asio::detached);
  }

  static asio::awaitable<void> write_all(std::shared_ptr<Socket> self) {
    while (!self->closed_) {
      const Text frame = self->outbox_.take();
      if (!frame) break;
      const auto [error, size] = co_await self->stream_.async_write(asio::buffer(*frame), kNoThrow);
      if (error) self->close();
    }
    self->writing_ = false;
    if (self->closed_ || !self->outbox_.over()) co_return;
    // listen() takes the peer's goodbye; one that says none is left.
    co_await self->stream_.async_close(websocket::close_code::normal, kNoThrow);
    self->close();
  }

  asio::io_context& io_;
  websocket::stream<Stream> stream_;
  Outbox outbox_;
  bool writing_ = false, closed_ = false;
};

std::string_view text(beast::string_view view) { return {view.data(), view.size()}; }

}  // namespace

struct Server::Impl {
  // A connection, as far as others must know of it.
  struct Session {
    std::function<void()> close;  // its stream, while it waits for a request
    bool known = false;           // has shown the token
  };
  using Sessions = std::list<std::shared_ptr<Session>>;

  Impl(ServerOptions given, Site& its_site)
      : options(std::move(given)), site(its_site), pool(kThreads) {}

  asio::awaitable<void> accept();
  asio::awaitable<void> greet(tcp::socket socket);
  template <typename Stream>
  asio::awaitable<void> serve(Stream stream, std::shared_ptr<Session> session);
  template <typename Stream>
  asio::awaitable<void> watch(Stream stream, http::request<http::string_body> request,
                              std::string run);
  asio::awaitable<http::response<http::string_body>> reply_to(
      const http::request<http::string_body>& request, std::shared_ptr<Session> session);
  asio::awaitable<void> repeat(std::chrono::milliseconds time, std::function<void()> tick);
  void trim_strangers();
  std::shared_ptr<Feed> feed_of(const std::string& run);

  ServerOptions options;
  Site& site;
  asio::io_context io{1};
  asio::thread_pool pool;
  tcp::acceptor acceptor{io};
  Sessions sessions;
  std::map<std::string, std::shared_ptr<Feed>> feeds;
  std::list<std::unique_ptr<Push>> pushes;
  size_t busy = 0, viewers = 0;
  bool stopped = false;
};

Server::Server(ServerOptions options, Fd listening, Site& site)
    : impl_(std::make_unique<Impl>(std::move(options), site)) {
  if (!listening) return;
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getsockname(listening.get(), reinterpret_cast<sockaddr*>(&address), &size);
  boost::system::error_code error;
  impl_->acceptor.assign(address.ss_family == AF_INET6 ? tcp::v6() : tcp::v4(), listening.release(),
                         error);
  if (!error) asio::co_spawn(impl_->io, impl_->accept(), asio::detached);
}

Server::~Server() {
  impl_->stopped = true;
  impl_->pool.join();
}

void Server::every(std::chrono::milliseconds time, std::function<void()> tick) {
  asio::co_spawn(impl_->io, impl_->repeat(time, std::move(tick)), asio::detached);
}

void Server::run() {
  const auto work = asio::make_work_guard(impl_->io);
  impl_->io.run();
}

void Server::stop() {
  asio::post(impl_->io, [impl = impl_.get()] {
    impl->stopped = true;
    impl->io.stop();
  });
}

void Server::push(PushTarget target, std::function<std::string()> body,
                  std::function<void(const std::string&)> say) {
  auto& made = impl_->pushes.emplace_back(
      std::make_unique<Push>(std::move(target), std::move(body), std::move(say)));
  asio::co_spawn(impl_->io, made->run(impl_->io, impl_->pool), asio::detached);
}

void Server::last_push() {
  for (const auto& push : impl_->pushes) push->stop();
}

bool Server::pushing() const {
  return std::any_of(impl_->pushes.begin(), impl_->pushes.end(),
                     [](const auto& push) { return !push->over(); });
}

size_t Server::viewers() const { return impl_->viewers; }

asio::awaitable<void> Server::Impl::repeat(std::chrono::milliseconds time,
                                           std::function<void()> tick) {
  asio::steady_timer timer(io);
  while (!stopped) {
    timer.expires_after(time);
    co_await timer.async_wait(kNoThrow);
    tick();
  }
}

asio::awaitable<void> Server::Impl::accept() {
  asio::steady_timer pause(io);
  while (!stopped) {
    auto [error, socket] = co_await acceptor.async_accept(kNoThrow);
    if (error == asio::error::operation_aborted) co_return;
    if (error) {  // out of descriptors, or the peer left already
      pause.expires_after(kAcceptPause);
      co_await pause.async_wait(kNoThrow);
      continue;
    }
    if (sessions.size() >= options.max_connections) continue;  // it hangs up
    boost::system::error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    asio::co_spawn(io, greet(std::move(socket)), asio::detached);
  }
}

void Server::Impl::trim_strangers() {
  size_t strangers = 0;
  for (const auto& session : sessions) strangers += session->known ? 0 : 1;
  for (const auto& session : sessions) {
    if (strangers <= options.max_strangers) return;
    if (session->known) continue;
    session->known = true;  // counted out
    if (session->close) session->close();
    --strangers;
  }
}

asio::awaitable<void> Server::Impl::greet(tcp::socket socket) {
  const auto session = std::make_shared<Session>();
  sessions.push_back(session);
  trim_strangers();  // before it can be closed itself
  if (options.tls) {
    Tls stream(std::move(socket), *options.tls);
    beast::get_lowest_layer(stream).expires_after(kRequestTime);
    session->close = [&stream] { beast::get_lowest_layer(stream).close(); };
    const auto [error] = co_await stream.async_handshake(asio::ssl::stream_base::server, kNoThrow);
    session->close = nullptr;
    if (!error) co_await serve(std::move(stream), session);
  } else {
    co_await serve(Plain(std::move(socket)), session);
  }
  sessions.remove(session);
}

template <typename Stream>
asio::awaitable<void> Server::Impl::serve(Stream stream, std::shared_ptr<Session> session) {
  beast::flat_buffer buffer(kMaxHeaderBytes + kMaxBodyBytes);
  session->close = [&stream] { beast::get_lowest_layer(stream).close(); };
  while (!stopped) {
    http::request_parser<http::string_body> parser;
    parser.header_limit(kMaxHeaderBytes);
    parser.body_limit(kMaxBodyBytes);
    // A stranger has little time; a browser keeps its connection between two requests.
    beast::get_lowest_layer(stream).expires_after(session->known ? kIdleTime : kRequestTime);
    const auto [error, size] = co_await http::async_read(stream, buffer, parser, kNoThrow);
    beast::get_lowest_layer(stream).expires_after(kReplyTime);
    if (error == http::error::body_limit || error == http::error::header_limit ||
        error == http::error::buffer_overflow) {
      auto refusal = refuse(error == http::error::body_limit ? 413 : 400,
                            "the request is too large", "send at most 4 KB", false);
      co_await http::async_write(stream, refusal, kNoThrow);
      break;
    }
    if (error) break;
    const auto& request = parser.get();
    if (websocket::is_upgrade(request)) {
      const Credentials from = credentials(request);
      auto problem = problem_of(options.access, from);
      std::optional<std::string> run;
      if (!problem) {
        session->known = true;
        run = site.live_run(path_of(text(request.target())));
        if (!run) problem = refuse(404, "there are no live frames there", "", false);
        if (run && viewers >= options.max_viewers)
          problem = refuse(503, "too many watch already", "close a page", false);
      }
      if (problem) {
        co_await http::async_write(stream, *problem, kNoThrow);
        break;
      }
      session->close = nullptr;
      co_await watch(std::move(stream), parser.release(), std::move(*run));
      co_return;
    }
    auto response = co_await reply_to(request, session);
    beast::get_lowest_layer(stream).expires_after(kReplyTime);
    const bool last = !request.keep_alive() || !session->known;
    response.keep_alive(!last);
    const auto [failed, written] = co_await http::async_write(stream, response, kNoThrow);
    if (failed || last) break;
  }
  session->close = nullptr;
  boost::system::error_code ignored;
  beast::get_lowest_layer(stream).socket().shutdown(tcp::socket::shutdown_send, ignored);
}

template <typename Stream>
asio::awaitable<void> Server::Impl::watch(Stream stream, http::request<http::string_body> request,
                                          std::string run) {
  const auto socket = std::make_shared<Socket<Stream>>(io, std::move(stream));
  if (!co_await socket->accept(request)) co_return;
  ++viewers;
  const auto feed = feed_of(run);
  feed->add(socket);
  co_await socket->listen();
  feed->remove(socket);
  --viewers;
}

std::shared_ptr<Feed> Server::Impl::feed_of(const std::string& run) {
  std::erase_if(feeds, [](const auto& entry) { return !entry.second->running(); });
  auto& feed = feeds[run];
  if (!feed) feed = std::make_shared<Feed>(io, pool, site, run);
  return feed;
}

asio::awaitable<http::response<http::string_body>> Server::Impl::reply_to(
    const http::request<http::string_body>& request, std::shared_ptr<Session> session) {
  const Credentials from = credentials(request);
  const std::string_view path = path_of(from.target);
  if (options.access.host_fits(from) && options.access.origin_fits(from) &&
      request.method() == http::verb::get && options.access.has_token_in_query(from)) {
    session->known = true;
    auto response = answer(options.page.answer("/"), true);
    response.set(http::field::set_cookie, options.access.set_cookie());
    co_return response;
  }
  if (auto problem = problem_of(options.access, from)) co_return std::move(*problem);
  session->known = true;
  if (options.page.has(path)) {
    if (request.method() != http::verb::get)
      co_return refuse(405, "the page is for GET", "use GET", true);
    co_return answer(options.page.answer(path), true);
  }
  if (busy >= kMaxBusy) co_return refuse(503, "too many requests at once", "try again", true);
  ++busy;
  const serve::Request asked{std::string(text(request.method_string())),
                             std::string(text(request.target())), request.body()};
  const serve::Reply reply =
      co_await on_pool<serve::Reply>(pool, [this, &asked] { return site.answer(asked); });
  --busy;
  co_return answer(reply, true);
}

}  // namespace stepscope::web
