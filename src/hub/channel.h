// One WebSocket between a node and the hub, plain or TLS: whole binary messages.
//
// Thread safety: none; everything happens on the thread of its io_context. Lifetime: shared; what
// is outstanding keeps it alive, close() ends that. Invariants: a message larger than the limit is
// never buffered; send() never waits, what it keeps is bounded (kMaxQueued: closed beyond).
// Errors are texts for people; a peer cannot put its own bytes into them.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <memory>
#include <string>

#include "base/result.h"
#include "hub/endpoint.h"
#include "hub/tls.h"

namespace stepscope::hub {

class Channel {
 public:
  static constexpr size_t kMaxQueued = 64 << 20;

  virtual ~Channel() = default;

  virtual boost::asio::awaitable<Status> accept() = 0;                      // the hub's side
  virtual boost::asio::awaitable<Status> connect(const Endpoint& hub) = 0;  // the node's
  virtual boost::asio::awaitable<Result<std::string>> read() = 0;
  virtual void send(std::string message) = 0;
  virtual size_t queued_bytes() const = 0;
  virtual void limit_message(size_t bytes) = 0;
  virtual boost::asio::awaitable<void> finish() = 0;  // sends what is queued and says goodbye
  virtual void close() = 0;                           // at once
};

// tls empty: plain.
std::shared_ptr<Channel> make_channel(boost::asio::io_context& io,
                                      boost::asio::ip::tcp::socket socket, const TlsContext& tls);

}  // namespace stepscope::hub
