#include "hub/server.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <list>

#include "base/clock.h"
#include "base/text.h"
#include "hub/channel.h"
#include "hub/handshake.h"

namespace stepscope::hub {
namespace asio = boost::asio;
using Tcp = asio::ip::tcp;
namespace {

constexpr auto kNoThrow = asio::as_tuple(asio::use_awaitable);
constexpr std::chrono::milliseconds kAcceptPause{100};  // out of descriptors
constexpr std::chrono::seconds kLingerTime{5};
constexpr size_t kMaxInstance = 200, kMaxRunId = 512;

std::string words(const Tcp::endpoint& peer) {
  return peer.address().to_string() + ":" + std::to_string(peer.port());
}

}  // namespace

struct Server::Impl {
  struct Session {
    std::shared_ptr<Channel> channel;
    std::string peer;
    std::shared_ptr<Job> job;
    size_t node = 0;
    uint64_t updates = 0;
    int64_t goodbye_ns = 0;  // 0: not yet
    bool answered = false;   // the summary is on its way
  };
  using Sessions = std::list<std::shared_ptr<Session>>;

  Impl(ServerOptions given, Jobs& its_jobs, Log& its_log)
      : options(std::move(given)), jobs(its_jobs), log(its_log) {}

  asio::awaitable<void> accept();
  asio::awaitable<void> serve(Tcp::socket socket, std::string peer);
  asio::awaitable<bool> greet(std::shared_ptr<Session> session);
  asio::awaitable<void> listen_to(std::shared_ptr<Session> session);
  bool join(Session& session, const pb::Join& join);
  bool take(Session& session, const pb::ToHub& message);
  asio::awaitable<void> repeat(std::chrono::milliseconds time, std::function<void()> tick);
  asio::awaitable<void> let_go(std::shared_ptr<Session> session, pb::ToNode message);
  void answer_waiting();
  void answer(const std::shared_ptr<Session>& session, const pb::JobSummary& summary);
  void refuse(const Session& session, const std::string& kind, const std::string& why);

  ServerOptions options;
  Jobs& jobs;
  Log& log;
  asio::io_context io{1};
  Tcp::acceptor acceptor{io};
  Sessions strangers, members;
  bool stopped = false;
};

Server::Server(ServerOptions options, Jobs& jobs, Log& log)
    : impl_(std::make_unique<Impl>(std::move(options), jobs, log)) {}
Server::~Server() = default;

Status Server::listen() {
  const Endpoint& where = impl_->options.listen;
  const auto fail = [&](const boost::system::error_code& error) {
    const std::string address = where.host + ":" + std::to_string(where.port);
    return Error{"cannot listen on " + address + ": " + error.message(),
                 error == asio::error::address_in_use ? "see who has it: ss -ltnp" : ""};
  };
  boost::system::error_code error;
  Tcp::resolver resolver(impl_->io);
  const auto found =
      resolver.resolve(where.host, std::to_string(where.port),
                       Tcp::resolver::passive | Tcp::resolver::numeric_service, error);
  if (error || found.empty()) return fail(error);
  const Tcp::endpoint endpoint = found.begin()->endpoint();
  Tcp::acceptor& acceptor = impl_->acceptor;
  if (acceptor.open(endpoint.protocol(), error); error) return fail(error);
  acceptor.set_option(Tcp::acceptor::reuse_address(true), error);
  if (acceptor.bind(endpoint, error); error) return fail(error);
  if (acceptor.listen(asio::socket_base::max_listen_connections, error); error) return fail(error);
  asio::co_spawn(impl_->io, impl_->accept(), asio::detached);
  every(std::chrono::milliseconds(100), [impl = impl_.get()] {
    impl->answer_waiting();
    impl->log.flush(monotonic_ns());
  });
  return ok();
}

uint16_t Server::port() const {
  boost::system::error_code error;
  return impl_->acceptor.local_endpoint(error).port();
}

void Server::every(std::chrono::milliseconds time, std::function<void()> tick) {
  asio::co_spawn(impl_->io, impl_->repeat(time, std::move(tick)), asio::detached);
}

void Server::run() { impl_->io.run(); }
void Server::stop() {
  asio::post(impl_->io, [impl = impl_.get()] {
    impl->stopped = true;
    impl->io.stop();
  });
}
size_t Server::connections() const { return impl_->strangers.size() + impl_->members.size(); }

asio::awaitable<void> Server::Impl::repeat(std::chrono::milliseconds time,
                                           std::function<void()> tick) {
  asio::steady_timer timer(io);
  while (!stopped) {
    timer.expires_after(time);
    co_await timer.async_wait(kNoThrow);
    tick();
  }
}

asio::awaitable<void> Server::Impl::accept() {
  asio::steady_timer pause(io);
  while (!stopped) {
    auto [error, socket] = co_await acceptor.async_accept(kNoThrow);
    if (error == asio::error::operation_aborted) co_return;
    if (error) {  // out of descriptors, or the peer left already
      log.say_often("connections that could not be taken",
                    "cannot take a connection: " + error.message(), monotonic_ns());
      pause.expires_after(kAcceptPause);
      co_await pause.async_wait(kNoThrow);
      continue;
    }
    boost::system::error_code gone;
    const Tcp::endpoint remote = socket.remote_endpoint(gone);
    if (gone) continue;
    if (strangers.size() + members.size() >= options.max_connections) {
      log.say_often("refused, too many connections",
                    "refused " + words(remote) + ": " + std::to_string(options.max_connections) +
                        " connections are open already",
                    monotonic_ns());
      continue;
    }
    socket.set_option(Tcp::no_delay(true), gone);
    asio::co_spawn(io, serve(std::move(socket), words(remote)), asio::detached);
  }
}

void Server::Impl::refuse(const Session& session, const std::string& kind, const std::string& why) {
  log.say_often("refused, " + kind, "refused " + session.peer + ": " + why, monotonic_ns());
}

asio::awaitable<void> Server::Impl::serve(Tcp::socket socket, std::string peer) {
  const auto session = std::make_shared<Session>();
  session->peer = std::move(peer);
  session->channel = make_channel(io, std::move(socket), options.tls);
  strangers.push_back(session);
  if (strangers.size() > options.max_strangers) {  // the oldest had its time
    refuse(*strangers.front(), "too many at once",
           std::to_string(options.max_strangers) + " others came and did not prove the token");
    strangers.front()->channel->close();
    strangers.pop_front();
  }
  const bool proved = co_await greet(session);
  strangers.remove(session);
  if (!proved) co_return;
  members.push_back(session);
  co_await listen_to(session);
  members.remove(session);
  if (session->job) session->job->lost(session->node, monotonic_ns());
}

asio::awaitable<bool> Server::Impl::greet(std::shared_ptr<Session> session) {
  const std::shared_ptr<Channel> channel = session->channel;
  asio::steady_timer deadline(io, kHandshakeTime);
  const auto late = std::make_shared<bool>(false);  // the timer may outlive this function
  deadline.async_wait([channel, late](const boost::system::error_code& error) {
    if (error) return;
    *late = true;
    channel->close();
  });
  const auto out_of_time = [&] {
    refuse(*session, "too slow",
           "it did not prove the token within " + std::to_string(kHandshakeTime.count()) + " s");
  };
  if (const Status accepted = co_await channel->accept(); !accepted) {
    deadline.cancel();
    if (*late)
      out_of_time();
    else
      refuse(*session, "no hub protocol", accepted.error().message);
    channel->close();
    co_return false;
  }
  const Handshake handshake = co_await greet_node(channel, options.token);
  deadline.cancel();
  if (handshake.done) {
    channel->limit_message(kMaxMessageBytes);
    co_return true;
  }
  if (*late) {
    out_of_time();
    co_return false;
  }
  refuse(*session, handshake.kind, handshake.problem);
  asio::steady_timer linger(io, kLingerTime);  // it may not listen to why
  linger.async_wait([channel](const boost::system::error_code& error) {
    if (!error) channel->close();
  });
  co_await channel->finish();
  linger.cancel();
  co_return false;
}

asio::awaitable<void> Server::Impl::listen_to(std::shared_ptr<Session> session) {
  while (true) {
    auto bytes = co_await session->channel->read();
    if (!bytes) {
      if (session->job && session->goodbye_ns == 0)
        log.say_often("lost a node",
                      "lost node " + session->job->shown_name(session->node) + " (" +
                          session->peer + "): " + bytes.error().message,
                      monotonic_ns());
      else if (!session->job)
        refuse(*session, "no run", "it joined no run: " + bytes.error().message);
      break;
    }
    const auto message = parse_to_hub(*bytes);
    if (!message) {
      refuse(*session, "garbage", message.error().message);
      break;
    }
    if (!take(*session, *message)) break;
  }
  session->channel->close();
}

bool Server::Impl::join(Session& session, const pb::Join& join) {
  const auto refused = [&](const std::string& why) {
    refuse(session, "join", why);
    pb::ToNode message;
    message.mutable_refused()->set_reason(why);
    session.channel->send(message.SerializeAsString());
    return true;  // it hangs up when it has read that
  };
  if (session.job) return false;
  if (join.run_id().empty() || join.run_id().size() > kMaxRunId || join.instance().empty() ||
      join.instance().size() > kMaxInstance)
    return refused("it names no run or no instance");
  auto job = jobs.job_for(join);
  if (!job) return refused(job.error().message);
  const auto node = (*job)->join(join, monotonic_ns());
  if (!node) return refused(node.error().message);
  session.job = *job;
  session.node = *node;
  log.say("node " + session.job->shown_name(*node) + " (" + session.peer + ") joined run " +
          session.job->run().name);
  pb::ToNode message;
  *message.mutable_have() = session.job->have(*node);
  session.channel->send(message.SerializeAsString());
  return true;
}

bool Server::Impl::take(Session& session, const pb::ToHub& message) {
  if (message.has_join()) return join(session, message.join());
  if (!session.job) {
    refuse(session, "garbage", "it sent something before it joined a run");
    return false;
  }
  if (message.has_goodbye()) {
    session.job->goodbye(session.node, message.goodbye(), monotonic_ns());
    session.goodbye_ns = monotonic_ns();
    log.say("node " + session.job->shown_name(session.node) + " has ended");
    return true;
  }
  if (!message.has_update()) {
    refuse(session, "garbage", "it greeted twice");
    return false;
  }
  const auto taken = session.job->update(session.node, message.update(), monotonic_ns());
  if (!taken) {
    refuse(session, "values", taken.error().message);
    return false;
  }
  pb::ToNode answer;
  answer.mutable_ack()->set_messages(++session.updates);
  session.channel->send(answer.SerializeAsString());
  if (taken->send_again) {
    pb::ToNode again;
    *again.mutable_have() = session.job->have(session.node);
    session.channel->send(again.SerializeAsString());
  }
  return true;
}

// The last word to a node, then it has a while to hang up.
asio::awaitable<void> Server::Impl::let_go(std::shared_ptr<Session> session, pb::ToNode message) {
  session->channel->send(message.SerializeAsString());
  asio::steady_timer linger(io, kLingerTime);
  co_await linger.async_wait(kNoThrow);
  session->channel->close();
}

void Server::Impl::answer_waiting() {
  const int64_t now = monotonic_ns();
  const Sessions waiting = members;
  for (const auto& session : waiting) {
    if (session->answered || session->goodbye_ns == 0 || !session->job ||
        now - session->goodbye_ns < kSummaryWaitNs || session->job->is_over(now))
      continue;
    answer(session, jobs.summary_of_now(*session->job));
  }
}

void Server::Impl::answer(const std::shared_ptr<Session>& session, const pb::JobSummary& summary) {
  session->answered = true;
  pb::ToNode message;
  pb::JobSummary& out = *message.mutable_summary();
  const size_t size = summary.summary_json().size();
  if (size <= kJsonForAll ||
      (session->job->has_lowest_rank(session->node) && size < kMaxMessageBytes))
    out.set_summary_json(summary.summary_json());
  out.set_complete(summary.complete());
  out.set_card(summary.card());
  out.set_folder(summary.folder());
  asio::co_spawn(io, let_go(session, std::move(message)), asio::detached);
}

void Server::send_news(const Job& job, const std::vector<std::string>& lines) {
  pb::ToNode message;
  for (const std::string& line : lines) message.mutable_news()->add_lines(line);
  const std::string bytes = message.SerializeAsString();
  for (const auto& session : impl_->members)
    if (session->job.get() == &job && !session->answered) session->channel->send(bytes);
}

void Server::send_summary(const Job& job, const pb::JobSummary& summary) {
  for (const auto& session : impl_->members)
    if (session->job.get() == &job && !session->answered) impl_->answer(session, summary);
}

}  // namespace stepscope::hub
