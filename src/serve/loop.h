// The agent's one loop: sleeps until a time, a descriptor or a request wakes it, and answers HTTP
// on a Unix socket meanwhile. Whoever sits at the socket is treated as hostile: other users are
// refused (the kernel tells who it is), requests are bounded in number, size and time, and nothing
// they send ends the agent.
//
// Thread safety: none; one thread owns it, handlers run inside wait(). Lifetime: the socket file is
// removed with it.
// Invariant: no TCP. One request a connection; at most kMaxConnections at a time, the rest wait in
// the backlog.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"

namespace stepscope::serve {

struct Request {
  std::string method, target, body;
};

struct Reply {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
};

using Handler = std::function<Reply(const Request&)>;

class Loop {
 public:
  static constexpr int kMaxConnections = 16;
  static constexpr size_t kMaxHeaderBytes = 8 * 1024;
  static constexpr size_t kMaxBodyBytes = 4 * 1024;
  static constexpr std::chrono::seconds kRequestTime{5};

  Loop();
  ~Loop();
  Loop(Loop&&) noexcept;
  Loop& operator=(Loop&&) noexcept;

  // Makes the socket (0600). Without it the loop still waits and wakes.
  Status listen(const std::string& path, Handler handler);

  // wait() returns when the descriptor is readable. It stays the caller's.
  void wake_on(int fd);

  // Returns after `time`, or earlier when a descriptor woke it. Answers requests until then.
  void wait(std::chrono::milliseconds time);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stepscope::serve
