// Link and server over loopback, in one process: the server in a thread of its own.
#include "hub/link.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/fd.h"
#include "hub/channel.h"
#include "hub/fixture.h"
#include "hub/handshake.h"
#include "hub/server.h"

namespace stepscope::hub {
namespace {

using fixture::Node;
using fixture::text_of;
constexpr int64_t kSecond = 1'000'000'000;
const Token kToken{"a token of more than sixteen bytes"};

struct Certificate {
  std::string folder, cert, key;
  Certificate() {
    char name[] = "/tmp/stepscope-hub-XXXXXX";
    folder = mkdtemp(name);
    cert = folder + "/cert.pem";
    key = folder + "/key.pem";
    EVP_PKEY* pair = EVP_EC_gen("P-256");
    X509* x = X509_new();
    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_gmtime_adj(X509_getm_notBefore(x), -60);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_set_pubkey(x, pair);
    X509_NAME* subject = X509_get_subject_name(x);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
    X509_set_issuer_name(x, subject);
    X509_EXTENSION* names =
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
    X509_add_ext(x, names, -1);
    X509_EXTENSION_free(names);
    X509_sign(x, pair, EVP_sha256());
    FILE* file = fopen(cert.c_str(), "w");
    PEM_write_X509(file, x);
    fclose(file);
    file = fopen(key.c_str(), "w");
    PEM_write_PrivateKey(file, pair, nullptr, nullptr, 0, nullptr, nullptr);
    fclose(file);
    X509_free(x);
    EVP_PKEY_free(pair);
  }
  ~Certificate() {
    std::remove(cert.c_str());
    std::remove(key.c_str());
    std::remove(folder.c_str());
  }
};

// A hub that keeps its runs in memory. Its thread owns everything; look() goes there.
class TestHub final : public Jobs {
 public:
  explicit TestHub(ServerOptions options, std::shared_ptr<Job> earlier = nullptr)
      : job_(std::move(earlier)), log_([this](const std::string& line) {
          const std::lock_guard lock(mutex_);
          lines_.push_back(line);
        }) {
    if (options.token.secret.empty()) options.token = kToken;
    options.listen.host = "127.0.0.1";
    server_ = std::make_unique<Server>(std::move(options), *this, log_);
    const Status listening = server_->listen();
    EXPECT_TRUE(listening) << listening.error().message;
    server_->every(std::chrono::milliseconds(5), [this] { tick(); });
    thread_ = std::thread([this] { server_->run(); });
  }
  ~TestHub() override { stop(); }
  void stop() {
    if (!thread_.joinable()) return;
    server_->stop();
    thread_.join();
  }

  Result<std::shared_ptr<Job>> job_for(const pb::Join& join) override {
    if (join.run_id() == "unwanted") return Error{"no place for it", ""};
    if (!job_) job_ = std::make_shared<Job>(RunHistory{});
    return job_;
  }
  pb::JobSummary summary_of_now(Job&) override {
    pb::JobSummary out;
    out.set_card("state of now");
    return out;
  }

  template <typename Use>
  void look(Use use) {
    std::unique_lock lock(mutex_);
    use_ = use;
    done_.wait(lock, [&] { return !use_; });
  }
  bool wait_until(std::function<bool(Job&)> holds) {
    for (int64_t end = monotonic_ns() + 20 * kSecond; monotonic_ns() < end; ::poll(nullptr, 0, 5)) {
      bool held = false;
      look([&] { held = job_ && holds(*job_); });
      if (held) return true;
    }
    return false;
  }
  bool said(const std::string& words) {
    for (int64_t end = monotonic_ns() + 20 * kSecond; monotonic_ns() < end;
         ::poll(nullptr, 0, 10)) {
      const std::lock_guard lock(mutex_);
      for (const std::string& line : lines_)
        if (line.find(words) != std::string::npos) return true;
    }
    ADD_FAILURE() << "never said: " << words;
    for (const std::string& line : lines_) ADD_FAILURE() << line;
    return false;
  }
  size_t lines() {
    const std::lock_guard lock(mutex_);
    return lines_.size();
  }
  uint16_t port() const { return server_->port(); }
  std::shared_ptr<Job> job() const { return job_; }
  Server& server() { return *server_; }
  bool ends_runs = true;

 private:
  void tick() {
    {
      const std::lock_guard lock(mutex_);
      if (use_) {
        use_();
        use_ = nullptr;
        done_.notify_all();
      }
    }
    if (!job_ || over_ || !ends_runs || !job_->is_over(monotonic_ns())) return;
    over_ = true;
    pb::JobSummary out;
    out.set_complete(true);
    out.set_card("the card");
    out.set_summary_json("{}");
    server_->send_summary(*job_, out);
  }

  std::shared_ptr<Job> job_;
  std::mutex mutex_;
  std::condition_variable done_;
  std::function<void()> use_;
  std::vector<std::string> lines_;
  Log log_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
  bool over_ = false;
};

std::unique_ptr<Link> link_to(uint16_t port, const Node& node, Token token = kToken,
                              TlsContext tls = {}) {
  LinkOptions options{.hub = {.host = "127.0.0.1", .port = port, .tls = tls != nullptr},
                      .token = std::move(token),
                      .tls = std::move(tls),
                      .join = node.join()};
  return std::make_unique<Link>(std::move(options));
}

bool wait_until(const std::function<bool()>& holds) {
  for (int64_t end = monotonic_ns() + 20 * kSecond; monotonic_ns() < end; ::poll(nullptr, 0, 5))
    if (holds()) return true;
  return false;
}

// The ranks as the hub has them in the end. The node's history must not change meanwhile.
void expect_same(TestHub& hub, const std::vector<const Node*>& nodes) {
  hub.look([&] {
    for (const Node* node : nodes)
      for (const RankHistory& rank : node->run.ranks) {
        const auto& ranks = hub.job()->run().ranks;
        const auto found = std::find_if(ranks.begin(), ranks.end(),
                                        [&](const RankHistory& r) { return r.rank == rank.rank; });
        ASSERT_NE(found, ranks.end());
        EXPECT_EQ(text_of(*found), text_of(rank));
      }
    EXPECT_EQ(hub.job()->lost_steps(), 0);
  });
}

TEST(Link, TwoNodesAndTheSummaryOfBoth) {
  TestHub hub({});
  Node a(1, "a", "i1", 0, 2, 4), b(2, "b", "i2", 2, 2, 4);
  const auto link_a = link_to(hub.port(), a), link_b = link_to(hub.port(), b);
  for (int i = 0; i < 20; ++i) {
    a.make_steps(10);
    b.make_steps(10);
    link_a->offer(a.run, monotonic_ns());
    link_b->offer(b.run, monotonic_ns());
    ::poll(nullptr, 0, 10);
  }
  std::optional<pb::JobSummary> from_b;
  std::thread other([&] { from_b = link_b->finish(b.run, 0, monotonic_ns() + 10 * kSecond); });
  const auto from_a = link_a->finish(a.run, 0, monotonic_ns() + 10 * kSecond);
  other.join();
  ASSERT_TRUE(from_a && from_b);
  EXPECT_EQ(from_a->card(), "the card");
  EXPECT_TRUE(from_b->complete());
  expect_same(hub, {&a, &b});
}

TEST(Link, ANodeThatEndsFirstGetsTheStateOfNow) {
  TestHub hub({});
  Node a(1, "a", "i1", 0, 1, 2), b(2, "b", "i2", 1, 1, 2);
  a.make_steps(3);
  b.make_steps(3);
  const auto link_a = link_to(hub.port(), a), link_b = link_to(hub.port(), b);
  ASSERT_TRUE(wait_until([&] { return link_b->state().joined; }));
  link_b->offer(b.run, monotonic_ns());
  const auto summary = link_a->finish(a.run, 0, monotonic_ns() + 10 * kSecond);
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->card(), "state of now");
  EXPECT_FALSE(summary->complete());
}

TEST(Link, NewsReachesTheNodesOfTheRunOnceAndInBounds) {
  TestHub hub({});
  Node a(1, "a", "i1", 0, 1, 2), b(2, "b", "i2", 1, 1, 2);
  const auto link_a = link_to(hub.port(), a), link_b = link_to(hub.port(), b);
  ASSERT_TRUE(wait_until([&] { return link_a->state().joined && link_b->state().joined; }));
  std::vector<std::string> of_a, of_b;
  hub.look([&] { hub.server().send_news(*hub.job(), {"found it", "over"}); });
  ASSERT_TRUE(wait_until([&] { return !(of_a = link_a->news()).empty(); }));
  ASSERT_TRUE(wait_until([&] { return !(of_b = link_b->news()).empty(); }));
  EXPECT_EQ(of_a, (std::vector<std::string>{"found it", "over"}));
  EXPECT_EQ(of_b, of_a);
  EXPECT_TRUE(link_a->news().empty());
  const Job other{RunHistory{}};
  hub.look([&] {
    hub.server().send_news(other, {"of another run"});
    hub.server().send_news(*hub.job(), std::vector<std::string>(5000, "too much"));
  });
  ASSERT_TRUE(wait_until([&] { return !(of_a = link_a->news()).empty(); }));
  EXPECT_EQ(of_a, std::vector<std::string>(Link::kMaxNews, "too much"));
}

TEST(Link, GoesOnWithAHubThatWasKilledAndCameBack) {
  Node a(1, "a", "i1", 0, 2, 2);
  auto hub = std::make_unique<TestHub>(ServerOptions{});
  const uint16_t port = hub->port();
  const auto link = link_to(port, a);
  a.make_steps(100);
  ASSERT_TRUE(wait_until([&] { return link->state().joined; }));
  link->offer(a.run, monotonic_ns());
  const auto all = [&](Job& job) {
    return !job.run().ranks.empty() && job.run().ranks.back().steps == a.run.ranks.back().steps;
  };
  ASSERT_TRUE(hub->wait_until(all));
  hub->stop();
  RunHistory committed = hub->job()->run();  // as of its last commit
  const auto stored = hub->job()->stored();
  hub.reset();
  a.make_steps(50);
  for (int i = 0; i < 10; ++i) {  // nothing of it disturbs
    link->offer(a.run, monotonic_ns() + i * kSecond);
    ::poll(nullptr, 0, 10);
  }
  ServerOptions again;
  again.listen.port = port;
  TestHub second(std::move(again),
                 std::make_shared<Job>(std::move(committed), stored, monotonic_ns()));
  const auto summary = link->finish(a.run, 0, monotonic_ns() + 20 * kSecond);
  // It may have taken longer to connect again than finish() waits for a hub that does not answer.
  if (!summary) {
    ASSERT_TRUE(link->finish(a.run, 0, monotonic_ns() + 20 * kSecond));
  }
  expect_same(second, {&a});
}

TEST(Link, ARestartedAgentNeitherLosesNorDoubles) {
  TestHub hub({});
  Node a(1, "a", "i1", 0, 2, 2);
  for (int life = 0; life < 4; ++life) {
    const auto link = link_to(hub.port(), a);
    a.make_steps(700);
    ASSERT_TRUE(wait_until([&] { return link->state().joined; }));
    link->offer(a.run, monotonic_ns());
    if (life % 2 == 1) ::poll(nullptr, 0, 50);  // else the connection ends in the middle
  }
  const auto link = link_to(hub.port(), a);
  ASSERT_TRUE(link->finish(a.run, 0, monotonic_ns() + 20 * kSecond));
  expect_same(hub, {&a});
}

TEST(Link, ASlowHubHoldsNobodyUp) {
  // It accepts and never reads; the handshake ends for want of an answer.
  const Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener.get(), 8), 0);
  socklen_t size = sizeof address;
  ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size);
  Node a(1, "a", "i1", 0, 1, 1);
  const int64_t begin = monotonic_ns();
  {
    const auto link = link_to(ntohs(address.sin_port), a);
    for (int i = 0; i < 50; ++i) {
      a.make_steps(20);
      link->offer(a.run, monotonic_ns() + i * kSecond);
    }
    EXPECT_FALSE(link->finish(a.run, 0, monotonic_ns() + 10 * kSecond));
  }
  EXPECT_LT(monotonic_ns() - begin, 8 * kSecond);
}

TEST(Link, BackPressureBoundsWhatIsOnItsWay) {
  TestHub hub({});
  Node a(1, "a", "i1", 0, 30, 30);
  const auto link = link_to(hub.port(), a);
  ASSERT_TRUE(wait_until([&] { return link->state().joined; }));
  a.make_steps(1000);  // some 6 MB
  hub.look([&] {       // the hub stands still meanwhile
    const int64_t begin = monotonic_ns();
    for (int i = 0; i < 10; ++i) link->offer(a.run, monotonic_ns() + i * kSecond);
    EXPECT_LT(monotonic_ns() - begin, 5 * kSecond);
  });
  ASSERT_TRUE(link->finish(a.run, 0, monotonic_ns() + 30 * kSecond));
  expect_same(hub, {&a});
}

TEST(Link, Tls) {
  const Certificate certificate;
  const auto hub_tls = make_hub_tls(certificate.cert, certificate.key);
  ASSERT_TRUE(hub_tls) << hub_tls.error().message;
  ServerOptions options;
  options.tls = *hub_tls;
  TestHub hub(std::move(options));
  Node a(1, "a", "i1", 0, 1, 1);
  a.make_steps(3);
  const Endpoint name{.host = "localhost", .port = 1, .tls = true},
      other{.host = "elsewhere", .port = 1, .tls = true};
  const std::string pin = *pin_of(certificate.cert);
  const auto joins = [&](const Trust& trust, const Endpoint& as) {
    auto tls = make_node_tls(trust, as);
    EXPECT_TRUE(tls);
    const auto link = link_to(hub.port(), a, kToken, *tls);
    wait_until([&] { return link->state().joined || !link->state().problem.empty(); });
    return link->state().joined;
  };
  EXPECT_TRUE(joins({.ca_file = certificate.cert, .pin = ""}, name));
  EXPECT_TRUE(joins({.ca_file = "", .pin = pin}, other));
  EXPECT_FALSE(joins({.ca_file = certificate.cert, .pin = ""}, other));
  EXPECT_FALSE(joins({.ca_file = "", .pin = std::string(64, '0')}, name));
  EXPECT_FALSE(joins({.ca_file = "", .pin = ""}, name));
  const auto plain = link_to(hub.port(), a);
  wait_until([&] { return !plain->state().problem.empty(); });
  EXPECT_FALSE(plain->state().joined);
  EXPECT_TRUE(hub.said("TLS failed"));
}

TEST(Link, AWrongTokenIsRefusedForGood) {
  TestHub hub({});
  Node a(1, "a", "i1", 0, 1, 1);
  a.make_steps(1);
  const auto link = link_to(hub.port(), a, Token{"another token of some length"});
  ASSERT_TRUE(wait_until([&] { return link->state().refused; }));
  EXPECT_EQ(link->state().problem, "it refused: the token is not this hub's");
  EXPECT_TRUE(hub.said("it has another token"));
  const int64_t begin = monotonic_ns();
  EXPECT_FALSE(link->finish(a.run, 0, begin + 10 * kSecond));
  EXPECT_LT(monotonic_ns() - begin, kSecond);
}

TEST(Link, ARunThatTheHubCannotKeepSaysWhy) {
  TestHub hub({});
  Node a(1, "a", "i1", 0, 1, 1);
  a.run.id = "unwanted";
  const auto link = link_to(hub.port(), a);
  ASSERT_TRUE(wait_until([&] { return !link->state().problem.empty(); }));
  EXPECT_EQ(link->state().problem, "it refused: no place for it");
}

// The handshake of two versions, on a channel of the test's own.
Handshake handshake_with(TestHub& hub, Versions versions, Token token) {
  boost::asio::io_context io;
  Handshake out;
  const Endpoint endpoint{.host = "127.0.0.1", .port = hub.port(), .tls = false};
  auto channel = make_channel(io, boost::asio::ip::tcp::socket(io), {});
  boost::asio::co_spawn(
      io,
      [&]() -> boost::asio::awaitable<void> {
        const Status connected = co_await channel->connect(endpoint);
        EXPECT_TRUE(connected) << connected.error().message;
        out = co_await greet_hub(channel, token, versions);
        channel->close();
        channel.reset();  // with its timers
      },
      boost::asio::detached);
  io.run();
  return out;
}

TEST(Handshake, OlderAndNewerProtocolsAreToldSo) {
  TestHub hub({});
  EXPECT_TRUE(handshake_with(hub, {1, 7}, kToken).done);
  for (const Versions versions : {Versions{2, 9}, Versions{0, 0}}) {
    const Handshake refused = handshake_with(hub, versions, kToken);
    EXPECT_FALSE(refused.done);
    EXPECT_TRUE(refused.for_good);
    EXPECT_NE(refused.problem.find("speaks protocol 1, the node (stepscope 0.1.0) speaks " +
                                   std::to_string(versions.min)),
              std::string::npos)
        << refused.problem;
  }
  EXPECT_TRUE(hub.said("speaks protocol 2 to 9, this hub 1"));
}

TEST(Handshake, AHubWithoutTheTokenIsNotBelieved) {
  // It says welcome to everybody, with a proof that it cannot have.
  boost::asio::io_context io;
  boost::asio::ip::tcp::acceptor acceptor(io, {boost::asio::ip::address_v4::loopback(), 0});
  const Endpoint endpoint{
      .host = "127.0.0.1", .port = acceptor.local_endpoint().port(), .tls = false};
  boost::asio::co_spawn(
      io,
      [&]() -> boost::asio::awaitable<void> {
        auto socket = co_await acceptor.async_accept(boost::asio::use_awaitable);
        const auto hub = make_channel(io, std::move(socket), {});
        (void)co_await hub->accept();
        (void)co_await hub->read();
        pb::ToNode challenge, welcome;
        challenge.mutable_challenge()->set_version(1);
        challenge.mutable_challenge()->set_nonce(std::string(kNonceBytes, 'n'));
        hub->send(challenge.SerializeAsString());
        (void)co_await hub->read();
        welcome.mutable_welcome()->set_mac(std::string(32, 'x'));
        hub->send(welcome.SerializeAsString());
        (void)co_await hub->read();
        hub->close();
      },
      boost::asio::detached);
  Handshake out;
  auto channel = make_channel(io, boost::asio::ip::tcp::socket(io), {});
  boost::asio::co_spawn(
      io,
      [&]() -> boost::asio::awaitable<void> {
        (void)co_await channel->connect(endpoint);
        out = co_await greet_hub(channel, kToken);
        channel->close();
        channel.reset();  // with its timers
      },
      boost::asio::detached);
  io.run();
  EXPECT_FALSE(out.done);
  EXPECT_TRUE(out.for_good);
  EXPECT_EQ(out.problem, "it did not prove that it has the token");
}

// --- strangers ---

Fd connect_raw(uint16_t port) {
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fd.reset();
  return fd;
}

const std::string kUpgrade =
    "GET /stepscope/hub HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";

void send_raw(const Fd& fd, const std::string& bytes) {
  (void)!::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

Fd upgraded(uint16_t port) {
  Fd fd = connect_raw(port);
  send_raw(fd, kUpgrade);
  std::string answer;
  char buffer[512];
  while (answer.find("\r\n\r\n") == std::string::npos) {
    const ssize_t n = ::recv(fd.get(), buffer, sizeof buffer, 0);
    if (n <= 0) return {};
    answer.append(buffer, static_cast<size_t>(n));
  }
  return fd;
}

bool hangs_up(const Fd& fd, int within_ms) {
  char buffer[4096];
  for (int64_t end = monotonic_ns() + within_ms * 1'000'000LL; monotonic_ns() < end;) {
    pollfd entry{fd.get(), POLLIN, 0};
    if (::poll(&entry, 1, 50) > 0 && ::recv(fd.get(), buffer, sizeof buffer, 0) <= 0) return true;
  }
  return false;
}

TEST(Strangers, GarbageAndHugeLengthsAreRefusedWithALine) {
  TestHub hub({});
  const Fd garbage = connect_raw(hub.port());
  send_raw(garbage, std::string(20000, '\xff'));
  EXPECT_TRUE(hangs_up(garbage, 5000));
  EXPECT_TRUE(hub.said("it does not speak HTTP"));

  const Fd page = connect_raw(hub.port());
  send_raw(page, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_TRUE(hangs_up(page, 5000));

  Fd huge = upgraded(hub.port());  // a frame of 2 GB, masked
  send_raw(huge, std::string("\x82\xff\x00\x00\x00\x00\x80\x00\x00\x00mask", 14));
  char goodbye[64];
  EXPECT_GT(::recv(huge.get(), goodbye, sizeof goodbye, 0), 0);  // told at once
  huge.reset();
  EXPECT_TRUE(hub.said("too large"));

  const Fd wrong = upgraded(hub.port());  // a whole frame that is no message
  send_raw(wrong, std::string("\x82\x84\x00\x00\x00\x00\xff\xff\xff\xff", 10));
  EXPECT_TRUE(hub.said("it sent no greeting"));

  Node a(1, "a", "i1", 0, 1, 1);
  a.make_steps(3);
  EXPECT_TRUE(link_to(hub.port(), a)->finish(a.run, 0, monotonic_ns() + 10 * kSecond));
}

TEST(Strangers, ASlowTrickleRunsOutOfTime) {
  TestHub hub({});
  const Fd slow = connect_raw(hub.port());
  const int64_t begin = monotonic_ns();
  bool ended = false;
  for (size_t i = 0; !ended && monotonic_ns() - begin < 20 * kSecond; ++i) {
    send_raw(slow, kUpgrade.substr(i % kUpgrade.size(), 1));
    ended = hangs_up(slow, 100);
  }
  EXPECT_TRUE(ended);
  EXPECT_LT(monotonic_ns() - begin, 15 * kSecond);
  EXPECT_TRUE(hub.said("did not prove the token within 10 s"));
}

TEST(Strangers, ManyHarmNobody) {
  ServerOptions options;
  options.max_strangers = 64;
  TestHub hub(std::move(options));
  Node a(1, "a", "i1", 0, 1, 1);
  a.make_steps(3);
  const auto link = link_to(hub.port(), a);
  ASSERT_TRUE(wait_until([&] { return link->state().joined; }));
  std::vector<Fd> strangers;
  for (int i = 0; i < 500; ++i) strangers.push_back(connect_raw(hub.port()));
  ASSERT_TRUE(wait_until([&] {
    size_t open = 1000;
    hub.look([&] { open = hub.server().connections(); });
    return open <= 65;
  }));
  EXPECT_TRUE(hub.said("others came and did not prove the token"));
  EXPECT_LT(hub.lines(), 20u);  // a line a second
  EXPECT_TRUE(link->state().joined);
  Node b(2, "b", "i2", 0, 1, 1);
  const auto late = link_to(hub.port(), b);  // a new one finds its way too
  EXPECT_TRUE(wait_until([&] { return late->state().joined; }));
  EXPECT_TRUE(link->finish(a.run, 0, monotonic_ns() + 10 * kSecond));
}

}  // namespace
}  // namespace stepscope::hub
