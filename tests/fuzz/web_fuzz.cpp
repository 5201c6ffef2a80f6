// What browsers and strangers send to the TCP server, against the server itself: HTTP, WebSocket
// frames, tokens, names. One server lives as long as the fuzzer; an input is a connection to it, and
// its first byte says what stands before the rest:
//
//   0  nothing: the bytes of a stranger
//   1  a request line with the token: headers and body of somebody who may come in
//   2  a WebSocket that was let in: frames
//   3  no connection: the rest is a target, a Host, an Origin, a cookie, a line each
// Whatever comes in, the site is asked by nobody without the token, and the server answers the next.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "base/text.h"
#include "web/server.h"

namespace {

using namespace stepscope;

constexpr const char* kToken = "0123456789abcdef0123456789abcdef";
std::atomic<bool> may_ask = false;

void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

class Site final : public web::Site {
 public:
  serve::Reply answer(const serve::Request& request) override {
    check(may_ask, "nobody asks without the token");
    check(request.body.size() <= web::Server::kMaxBodyBytes, "bodies are bounded");
    return {200, "application/json", "{}\n"};
  }
  std::optional<std::string> live_run(std::string_view path) override {
    check(may_ask, "nobody watches without the token");
    return path == "/v1/live" ? std::optional<std::string>("run") : std::nullopt;
  }
  Result<Now> now(const std::string&, std::optional<int64_t>) override {
    return Now{.ended = false, .step = 1, .tick = R"({"type":"tick"})"};
  }
  Result<std::string> summary(const std::string&) override { return std::string("{}"); }
};

struct Running {
  Site site;
  uint16_t port = 0;
  std::thread thread;

  Running() {
    auto listening = web::listen_on({.host = "127.0.0.1", .port = 0, .tls = false});
    check(static_cast<bool>(listening), "it listens");
    port = web::port_of(*listening);
    thread = std::thread([this, fd = std::make_shared<Fd>(std::move(*listening))] {
      web::Server server({.access = web::Access(kToken, {}, false), .page = {}, .tls = {}},
                         std::move(*fd), site);
      server.run();
    });
    thread.detach();  // it ends with the fuzzer
  }
};

// What comes back until the server hangs up.
std::string talk(uint16_t port, const std::string& bytes) {
  const Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  check(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0,
        "it takes connections");
  const linger at_once{1, 0};  // else thousands of ended connections use up the ports
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  for (std::string_view rest = bytes; !rest.empty();) {
    const ssize_t n = ::send(fd.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (n <= 0) break;
    rest.remove_prefix(static_cast<size_t>(n));
  }
  ::shutdown(fd.get(), SHUT_WR);
  std::string got;
  char buffer[4096];
  for (ssize_t n; (n = ::recv(fd.get(), buffer, sizeof buffer, 0)) > 0;)
    got.append(buffer, static_cast<size_t>(n));
  return got;
}

void check_access(const std::string& text) {
  static const web::Access access(kToken, {"node7"}, false);
  auto lines = split(text, '\n');
  lines.resize(4);
  const web::Credentials from{.host = lines[1],
                              .origin = lines[2],
                              .cookie = lines[3],
                              .authorization = lines[0],
                              .target = lines[0]};
  if (access.host_fits(from)) {
    std::string host(lines[1]);
    for (char& c : host) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    const auto begins = [&](std::string_view name) {
      return host.starts_with(name) && (host.size() == name.size() || host[name.size()] == ':');
    };
    check(begins("127.0.0.1") || begins("localhost") || begins("[::1]") || begins("::1") ||
              begins("node7"),
          "only these hosts");
  }
  if (access.has_token_in_query(from))
    check(lines[0].find("token=") != std::string_view::npos, "the token is in it");
  if (access.has_cookie_or_bearer(from))
    check(text.find(kToken) != std::string::npos ||
              text.find(access.cookie_name()) != std::string::npos,
          "the token or the cookie is in it");
  (void)web::parse_host_name(lines[1]);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Running& running = *new Running;
  if (size == 0) return 0;
  const std::string rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string mine =
      std::string("Host: localhost\r\nAuthorization: Bearer ") + kToken + "\r\n";
  switch (data[0] % 4) {
    case 0: {
      // Who guesses the token is no stranger.
      may_ask = rest.find(kToken) != std::string::npos;
      const std::string got = talk(running.port, rest);
      check(may_ask || got.find(" 200 ") == std::string::npos || got.find(" 200 ") > 12,
            "a stranger gets no 200");
      break;
    }
    case 1:
      may_ask = true;
      talk(running.port, "GET /v1/x HTTP/1.1\r\n" + mine + rest);
      break;
    case 2:
      may_ask = true;
      talk(running.port, "GET /v1/live HTTP/1.1\r\n" + mine +
                             "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: "
                             "13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n" +
                             rest);
      break;
    default:
      check_access(rest);
  }
  return 0;
}
