#include "hub/handshake.h"

#include "base/text.h"
#include "base/version.h"
#include "hub/convert.h"

namespace stepscope::hub {
namespace asio = boost::asio;
namespace {

std::string product() { return std::string("stepscope ") + kVersion; }

std::string range(const Versions& versions) {
  return versions.min == versions.max
             ? std::to_string(versions.min)
             : std::to_string(versions.min) + " to " + std::to_string(versions.max);
}

Handshake failed(std::string kind, std::string problem, bool for_good = false) {
  return {
      .done = false, .for_good = for_good, .problem = std::move(problem), .kind = std::move(kind)};
}

Handshake succeeded() {
  Handshake out;
  out.done = true;
  return out;
}

Handshake refuse(Channel& channel, std::string kind, const std::string& told, std::string problem) {
  pb::ToNode message;
  message.mutable_refused()->set_reason(told);
  message.mutable_refused()->set_for_good(true);
  channel.send(message.SerializeAsString());
  return failed(std::move(kind), std::move(problem), true);
}

}  // namespace

Result<pb::ToHub> parse_to_hub(const std::string& bytes) {
  pb::ToHub message;
  if (!message.ParseFromString(bytes) || message.kind_case() == pb::ToHub::KIND_NOT_SET)
    return Error{"it sent no message of the hub's protocol", ""};
  return message;
}

Result<pb::ToNode> parse_to_node(const std::string& bytes) {
  pb::ToNode message;
  if (!message.ParseFromString(bytes) || message.kind_case() == pb::ToNode::KIND_NOT_SET)
    return Error{"it sent no message of the hub's protocol", ""};
  return message;
}

asio::awaitable<Handshake> greet_node(std::shared_ptr<Channel> channel, const Token& token,
                                      Versions ours) {
  auto bytes = co_await channel->read();
  if (!bytes) co_return failed("handshake", bytes.error().message);
  auto first = parse_to_hub(*bytes);
  if (!first || !first->has_hello())
    co_return refuse(*channel, "garbage", "that was no greeting of a stepscope node",
                     "it sent no greeting");
  const pb::Hello& hello = first->hello();
  const Versions theirs{hello.min_version(), hello.max_version()};
  const auto version = common_version(ours, theirs);
  if (!version)
    co_return refuse(*channel, "protocol",
                     "this hub (" + product() + ") speaks protocol " + range(ours) +
                         ", the node (" + short_text(hello.product(), kMaxName) + ") speaks " +
                         range(theirs) + ": install the same stepscope on both",
                     short_text(hello.product(), kMaxName) + " speaks protocol " + range(theirs) +
                         ", this hub " + range(ours));
  if (hello.nonce().size() != kNonceBytes)
    co_return refuse(*channel, "garbage", "the nonce has a wrong size",
                     "its nonce has a wrong size");
  const std::string nonce = make_nonce();
  if (nonce.empty()) co_return failed("random", "the system gives no random bytes");
  pb::ToNode challenge;
  challenge.mutable_challenge()->set_version(*version);
  challenge.mutable_challenge()->set_nonce(nonce);
  challenge.mutable_challenge()->set_product(product());
  channel->send(challenge.SerializeAsString());

  bytes = co_await channel->read();
  if (!bytes) co_return failed("handshake", bytes.error().message);
  auto second = parse_to_hub(*bytes);
  if (!second || !second->has_proof())
    co_return refuse(*channel, "garbage", "that was no proof of the token",
                     "it sent no proof of the token");
  const std::string expected = proof(token, Speaker::kNode, hello.nonce(), nonce, *version);
  if (!equal_in_constant_time(second->proof().mac(), expected))
    co_return refuse(*channel, "wrong token", "the token is not this hub's",
                     "it has another token");
  pb::ToNode welcome;
  welcome.mutable_welcome()->set_mac(proof(token, Speaker::kHub, hello.nonce(), nonce, *version));
  channel->send(welcome.SerializeAsString());
  co_return succeeded();
}

asio::awaitable<Handshake> greet_hub(std::shared_ptr<Channel> channel, const Token& token,
                                     Versions ours) {
  const std::string nonce = make_nonce();
  if (nonce.empty()) co_return failed("random", "the system gives no random bytes");
  pb::ToHub hello;
  hello.mutable_hello()->set_min_version(ours.min);
  hello.mutable_hello()->set_max_version(ours.max);
  hello.mutable_hello()->set_nonce(nonce);
  hello.mutable_hello()->set_product(product());
  channel->send(hello.SerializeAsString());

  auto bytes = co_await channel->read();
  if (!bytes) co_return failed("handshake", bytes.error().message);
  auto first = parse_to_node(*bytes);
  if (first && first->has_refused())
    co_return failed("refused", "it refused: " + short_text(first->refused().reason(), kMaxText),
                     first->refused().for_good());
  if (!first || !first->has_challenge())
    co_return failed("garbage", "it sent no challenge: it is no hub");
  const pb::Challenge& challenge = first->challenge();
  if (challenge.version() < ours.min || challenge.version() > ours.max ||
      challenge.nonce().size() != kNonceBytes)
    co_return failed("protocol",
                     "it (" + short_text(challenge.product(), kMaxName) + ") chose protocol " +
                         std::to_string(challenge.version()) + ", this node (" + product() +
                         ") speaks " + range(ours),
                     true);
  pb::ToHub answer;
  answer.mutable_proof()->set_mac(
      proof(token, Speaker::kNode, nonce, challenge.nonce(), challenge.version()));
  channel->send(answer.SerializeAsString());

  bytes = co_await channel->read();
  if (!bytes) co_return failed("handshake", bytes.error().message);
  auto second = parse_to_node(*bytes);
  if (second && second->has_refused())
    co_return failed("refused", "it refused: " + short_text(second->refused().reason(), kMaxText),
                     second->refused().for_good());
  const std::string expected =
      proof(token, Speaker::kHub, nonce, challenge.nonce(), challenge.version());
  if (!second || !second->has_welcome() ||
      !equal_in_constant_time(second->welcome().mac(), expected))
    co_return failed("wrong token", "it did not prove that it has the token", true);
  co_return succeeded();
}

}  // namespace stepscope::hub
