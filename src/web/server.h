// The TCP server of the page, the API and the live frames: HTTP/1.1 and WebSocket, plain or TLS, on
// one thread, with a few more for what the site takes its time for.
//
// Whoever connects is treated as hostile: without the token there is one static notice, requests are
// bounded in number, size and time, and a reader that is slow is skipped, never waited for.
//
// Thread safety: none; run() is the thread, the rest is called before it, but for stop().
// Lifetime: the site outlives it. Invariants: no path of a request is opened; every reply has the
// security headers; what a peer sends ends at most its own connection.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "hub/endpoint.h"
#include "hub/tls.h"
#include "web/access.h"
#include "web/page.h"
#include "web/push.h"
#include "web/site.h"

namespace stepscope::web {

struct ServerOptions {
  Access access;
  Page page;
  hub::TlsContext tls;  // empty: plain
  size_t max_connections = 1024;
  size_t max_strangers = 64;  // have not shown the token; the oldest makes way
  size_t max_viewers = 256;
};

// A listening socket. It is made before the server, so that what is wrong with the address can be
// said at once.
Result<Fd> listen_on(const hub::Endpoint& where);
uint16_t port_of(const Fd& listening);

class Server {
 public:
  static constexpr size_t kMaxHeaderBytes = 16 * 1024, kMaxBodyBytes = 4 * 1024;
  static constexpr size_t kMaxBusy = 64;  // requests that the site works on
  static constexpr std::chrono::seconds kRequestTime{10}, kReplyTime{30}, kIdleTime{60};

  Server(ServerOptions options, Fd listening, Site& site);
  ~Server();

  void every(std::chrono::milliseconds time, std::function<void()> tick);
  // Sends body() there, every ten seconds while it runs.
  void push(PushTarget target, std::function<std::string()> body,
            std::function<void(const std::string&)> say);
  void last_push();  // once more, and no more
  bool pushing() const;

  void run();   // until stop()
  void stop();  // from any thread

  size_t viewers() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stepscope::web
