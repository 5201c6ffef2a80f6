#include "serve/client.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <boost/beast/http.hpp>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"

namespace stepscope::serve {
namespace http = boost::beast::http;
namespace {

constexpr uint64_t kMaxReplyBytes = 64 << 20;
constexpr int kConnectPauseMs = 5;

bool ready(int fd, short what, int64_t deadline_ns) {
  while (true) {
    const int64_t left_ms = (deadline_ns - monotonic_ns()) / 1'000'000;
    if (left_ms <= 0) return false;
    pollfd entry{fd, what, 0};
    const int n = ::poll(&entry, 1, static_cast<int>(left_ms));
    if (n > 0) return true;
    if (n < 0 && errno != EINTR) return false;
  }
}

Error no_answer(const std::string& socket_path, const std::string& why) {
  return {"the agent at " + socket_path + " does not answer: " + why, ""};
}

}  // namespace

Result<std::string> ask(const std::string& socket_path, const Request& request,
                        std::chrono::milliseconds wait) {
  auto reply = exchange(socket_path, request, wait);
  if (!reply) return reply.error();
  if (reply->status != 200)
    return no_answer(socket_path, "status " + std::to_string(reply->status));
  return std::move(reply->body);
}

Result<Reply> exchange(const std::string& socket_path, const Request& request,
                       std::chrono::milliseconds wait) {
  const auto fail = [&](const std::string& why) { return no_answer(socket_path, why); };
  const int64_t deadline = monotonic_ns() + std::chrono::nanoseconds(wait).count();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path.size() >= sizeof address.sun_path)
    return fail("the path is too long for a socket");
  std::memcpy(address.sun_path, socket_path.c_str(), socket_path.size() + 1);
  const Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fail(errno_text());
  while (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    if (errno != EAGAIN) return fail(errno_text());  // EAGAIN: others wait in line before us
    if (monotonic_ns() >= deadline) return fail("no answer in time");
    ::poll(nullptr, 0, kConnectPauseMs);
  }

  std::string bytes = request.method + " " + request.target + " HTTP/1.1\r\nHost: localhost\r\n" +
                      "Content-Length: " + std::to_string(request.body.size()) + "\r\n\r\n" +
                      request.body;
  for (std::string_view rest = bytes; !rest.empty();) {
    if (!ready(fd.get(), POLLOUT, deadline)) return fail("no answer in time");
    const ssize_t n = ::send(fd.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) return fail(errno_text());
    if (n > 0) rest.remove_prefix(static_cast<size_t>(n));
  }

  http::response_parser<http::string_body> parser;
  parser.body_limit(kMaxReplyBytes);
  parser.eager(true);
  std::string pending;
  boost::system::error_code error;
  while (!parser.is_done()) {
    if (!ready(fd.get(), POLLIN, deadline)) return fail("no answer in time");
    char buffer[16 * 1024];
    const ssize_t n = ::recv(fd.get(), buffer, sizeof buffer, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n <= 0) return fail(n == 0 ? "it hung up" : errno_text());
    pending.append(buffer, static_cast<size_t>(n));
    const size_t used = parser.put(boost::asio::buffer(pending), error);
    if (error && error != http::error::need_more) return fail(error.message());
    pending.erase(0, used);
  }
  auto& answer = parser.get();
  return Reply{static_cast<int>(answer.result_int()),
               std::string(answer[http::field::content_type]), std::move(answer.body())};
}

}  // namespace stepscope::serve
