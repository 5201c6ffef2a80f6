// The hub's listener: one thread, one port. Whoever connects is a stranger until the token is
// proved: bounded in number, bytes and time, and the oldest stranger makes way for the newest.
//
// Thread safety: none; run() is the thread, everything else is called before it or from within it.
// Lifetime: jobs are shared with who keeps them. Invariants: what a peer sends ends at most its own
// connection; each refusal is one line in the log, and at most one a second of a kind.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "hub/endpoint.h"
#include "hub/hub.pb.h"
#include "hub/job.h"
#include "hub/log.h"
#include "hub/tls.h"
#include "hub/token.h"

namespace stepscope::hub {

struct ServerOptions {
  Endpoint listen;
  Token token;
  TlsContext tls;  // empty: plain
  size_t max_connections = 4096;
  size_t max_strangers = 256;
};

// Which runs there are, and what is said of them. Implemented by who stores them.
class Jobs {
 public:
  virtual ~Jobs() = default;
  virtual Result<std::shared_ptr<Job>> job_for(const pb::Join& join) = 0;
  // For a node that waits at its end while others still run.
  virtual pb::JobSummary summary_of_now(Job& job) = 0;
};

class Server {
 public:
  static constexpr int64_t kSummaryWaitNs = 3'000'000'000;  // then a node gets the state of now
  static constexpr size_t kJsonForAll = 1 << 20;  // larger: for the node with the lowest rank only

  Server(ServerOptions options, Jobs& jobs, Log& log);
  ~Server();

  Status listen();
  uint16_t port() const;
  void every(std::chrono::milliseconds time, std::function<void()> tick);
  void run();   // until stop()
  void stop();  // from within, or by a signal handler's thread

  // To every node of it that is connected now.
  void send_news(const Job& job, const std::vector<std::string>& lines);
  // The same; they are let go then.
  void send_summary(const Job& job, const pb::JobSummary& summary);
  size_t connections() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stepscope::hub
