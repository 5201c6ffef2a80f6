// The node's way to the hub: a thread of its own that connects, proves the token, sends what is
// newer than what the hub has, and begins again when the connection is lost.
//
//   [waiting] --connected, proved, joined, told what the hub has--> [joined] --lost--> [waiting]
//       ^  pause 0.2 s, doubled up to 10 s, with jitter                                  |
//       +--------------------------------------------------------------------------------+
//
// Thread safety: offer() and finish() by one thread, the agent's; everything else by the link's own.
// They share a small state under a mutex that neither holds while it encodes, sends or waits.
// Lifetime: the thread ends with this object, unless it is looking up a name: then after that.
// Invariants: at most kMaxUnacknowledged bytes are on their way; beyond it offer() returns at once
// and what was not sent stays where it is, in the history. Nothing here can hold up who records.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "hub/endpoint.h"
#include "hub/hub.pb.h"
#include "hub/tls.h"
#include "hub/token.h"
#include "model/history.h"

namespace stepscope::hub {

struct LinkOptions {
  Endpoint hub;
  Token token;
  TlsContext tls;  // empty: plain
  pb::Join join;
};

class Link {
 public:
  static constexpr size_t kMaxUnacknowledged = 4 << 20;
  static constexpr size_t kMaxNews = 100;  // lines that nobody took yet

  explicit Link(LinkOptions options);
  ~Link();
  Link(const Link&) = delete;

  // Hands over what the hub has not got, as far as there is room. Cheap when there is nothing.
  void offer(const RunHistory& run, int64_t now_ns);

  // The end: everything, a goodbye, and the summary of the whole job, if the hub gives one before
  // the deadline (CLOCK_MONOTONIC).
  std::optional<pb::JobSummary> finish(const RunHistory& run, std::optional<int> exit_code,
                                       int64_t deadline_ns);

  // What the hub had to say since the last time: bounded, as the peer sent it.
  std::vector<std::string> news();

  struct State {
    bool joined = false;  // now
    bool ever_joined = false;
    bool refused = false;  // for good: version, token
    std::string problem;   // why not joined; may be empty
    int64_t problem_since_ns = 0;
  };
  State state() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;  // with the thread
};

}  // namespace stepscope::hub
