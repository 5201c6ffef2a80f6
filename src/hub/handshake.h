// Versions, then the token, proved by both sides. hub.proto draws it.
//
// Thread safety: that of the channel. Invariant: nothing of a run is sent or read before both
// proofs were checked; the node proves first, so that a stranger at the hub's port learns nothing
// that a token could be tried against.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <string>

#include "hub/channel.h"
#include "hub/hub.pb.h"
#include "hub/protocol.h"
#include "hub/token.h"

namespace stepscope::hub {

struct Handshake {
  bool done = false;
  bool for_good = false;  // refused, and trying again leads to nothing
  std::string problem;    // when not done
  std::string kind;       // of the problem: "wrong token", "protocol", ...
};

boost::asio::awaitable<Handshake> greet_node(std::shared_ptr<Channel> channel, const Token& token,
                                             Versions ours = {});
boost::asio::awaitable<Handshake> greet_hub(std::shared_ptr<Channel> channel, const Token& token,
                                            Versions ours = {});

// An Error when the bytes are no message of this kind.
Result<pb::ToHub> parse_to_hub(const std::string& bytes);
Result<pb::ToNode> parse_to_node(const std::string& bytes);

}  // namespace stepscope::hub
