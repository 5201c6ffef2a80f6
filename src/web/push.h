// Sends metrics to a monitoring system every ten seconds, as remote-write or OTLP/HTTP. A receiver
// that is slow or gone costs what was to be sent, and one notice; nothing waits for it.
//
// Thread safety: none; the coroutine of an io_context. What makes the body is called on a thread of
// the pool.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "hub/endpoint.h"
#include "hub/tls.h"

namespace stepscope::web {

struct PushTarget {
  enum class Kind { kRemoteWrite, kOtlp } kind = Kind::kRemoteWrite;
  hub::Endpoint where;
  std::string path;
  std::string user;   // "name:password"; empty: none
  std::string shown;  // the URL without them
};
// http(s)://[USER:PASSWORD@]HOST[:PORT][/PATH]. An OTLP URL without a path means /v1/metrics.
Result<PushTarget> parse_push_url(PushTarget::Kind kind, std::string_view url);

class Push {
 public:
  static constexpr std::chrono::seconds kEvery{10}, kPatience{5};

  // body(): what to send; say(): a notice for the user.
  Push(PushTarget target, std::function<std::string()> body,
       std::function<void(const std::string&)> say);

  // Now, and every ten seconds until stop() (of the io_context's thread), and once more then.
  boost::asio::awaitable<void> run(boost::asio::io_context& io, boost::asio::thread_pool& pool);
  void stop();
  bool over() const { return over_; }

 private:
  boost::asio::awaitable<Status> send(boost::asio::io_context& io, std::string body);

  PushTarget target_;
  std::function<std::string()> body_;
  std::function<void(const std::string&)> say_;
  std::function<void()> wake_;  // while it waits
  bool stopping_ = false, over_ = false, failed_ = false;
};

}  // namespace stepscope::web
