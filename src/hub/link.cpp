#include "hub/link.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "hub/channel.h"
#include "hub/delta.h"
#include "hub/handshake.h"

namespace stepscope::hub {
namespace asio = boost::asio;
namespace {

constexpr auto kNoThrow = asio::as_tuple(asio::use_awaitable);
constexpr std::chrono::milliseconds kFirstPause{200}, kLongestPause{10'000}, kRefusedPause{60'000};
constexpr int64_t kOfferEveryNs = 200'000'000, kStateEveryNs = 1'000'000'000;
constexpr int64_t kUnjoinedWaitNs = 2'000'000'000;  // at the end, for a hub that does not answer
constexpr std::chrono::milliseconds kLook{20}, kEndWait{1000};
constexpr size_t kMaxSummaryBytes = 64 << 20;

}  // namespace

struct Link::Impl {
  explicit Impl(LinkOptions given) : options(std::move(given)) {}

  asio::awaitable<void> work();
  asio::awaitable<void> once();
  asio::awaitable<std::string> join(std::shared_ptr<Channel> channel);
  bool take(const pb::ToNode& message);
  void joined(const pb::Have& have);
  void push(std::string message, bool update);
  void drain();
  bool offer(const RunHistory& run, bool state);
  void set_problem(std::string text, bool refused);

  LinkOptions options;
  asio::io_context io{1};
  std::shared_ptr<Channel> channel;  // the link's thread only
  bool stopping = false;             // the link's thread only
  asio::steady_timer pause{io};
  std::minstd_rand random{static_cast<unsigned>(monotonic_ns())};

  mutable std::mutex mutex;
  std::condition_variable changed;
  // Under the mutex. A generation is a joined connection, or one that was told anew what the hub has.
  uint64_t generation = 0;
  pb::Have have;
  State shown;
  std::deque<std::string> outbox;
  std::deque<size_t> unacknowledged;  // sizes of the updates on their way, oldest first
  uint64_t acknowledged = 0;          // of this connection
  size_t on_the_way = 0;
  std::optional<pb::JobSummary> summary;
  std::vector<std::string> news;

  // The agent's thread only.
  Delta delta;
  uint64_t delta_generation = 0;
  int64_t offered_ns = 0, stated_ns = 0;

  bool ended = false;  // under the mutex: the thread touches nothing any more but to leave
};

void Link::Impl::set_problem(std::string text, bool refused) {
  const std::lock_guard lock(mutex);
  if (shown.problem.empty() || shown.joined) shown.problem_since_ns = monotonic_ns();
  shown.joined = false;
  shown.refused = refused;
  shown.problem = std::move(text);
  changed.notify_all();
}

asio::awaitable<void> Link::Impl::work() {
  std::chrono::milliseconds next = kFirstPause;
  while (!stopping) {
    const uint64_t before = generation;
    co_await once();
    channel.reset();
    if (stopping) co_return;
    if (generation != before) next = kFirstPause;  // it had worked
    const bool refused = [&] {
      const std::lock_guard lock(mutex);
      return shown.refused;
    }();
    const auto longest = (refused ? kRefusedPause : next).count();
    pause.expires_after(std::chrono::milliseconds(
        std::uniform_int_distribution<int64_t>(longest / 2, longest)(random)));
    co_await pause.async_wait(kNoThrow);
    next = std::min(next * 2, kLongestPause);
  }
}

// One connection, from its making to its end.
asio::awaitable<void> Link::Impl::once() {
  channel = make_channel(io, asio::ip::tcp::socket(io), options.tls);
  const std::shared_ptr<Channel> mine = channel;
  asio::steady_timer deadline(io, kHandshakeTime);
  deadline.async_wait([mine](const boost::system::error_code& error) {
    if (!error) mine->close();
  });
  if (const Status connected = co_await mine->connect(options.hub); !connected)
    co_return set_problem(connected.error().message, false);
  const Handshake handshake = co_await greet_hub(mine, options.token);
  if (!handshake.done) {
    set_problem(handshake.problem, handshake.for_good);
    co_return co_await mine->finish();
  }
  if (const std::string problem = co_await join(mine); !problem.empty())
    co_return set_problem(problem, false);
  deadline.cancel();
  while (!stopping) {
    auto bytes = co_await mine->read();
    if (!bytes) co_return set_problem("connection lost: " + bytes.error().message, false);
    const auto message = parse_to_node(*bytes);
    if (!message) co_return set_problem(message.error().message, false);
    if (!take(*message)) co_return;
  }
}

asio::awaitable<std::string> Link::Impl::join(std::shared_ptr<Channel> mine) {
  mine->limit_message(kMaxSummaryBytes);
  pb::ToHub join;
  *join.mutable_join() = options.join;
  mine->send(join.SerializeAsString());
  auto bytes = co_await mine->read();
  if (!bytes) co_return bytes.error().message;
  const auto message = parse_to_node(*bytes);
  if (!message) co_return message.error().message;
  if (message->has_refused()) co_return "it refused: " + message->refused().reason();
  if (!message->has_have()) co_return "it did not say what it has";
  {
    const std::lock_guard lock(mutex);
    outbox.clear();
    unacknowledged.clear();
    acknowledged = 0;
    on_the_way = 0;
  }
  joined(message->have());
  co_return "";
}

void Link::Impl::joined(const pb::Have& told) {
  const std::lock_guard lock(mutex);
  have = told;
  ++generation;
  shown.joined = shown.ever_joined = true;
  shown.refused = false;
  shown.problem.clear();
  changed.notify_all();
}

bool Link::Impl::take(const pb::ToNode& message) {
  if (message.has_refused()) {
    set_problem("it refused: " + message.refused().reason(), message.refused().for_good());
    return false;
  }
  if (message.has_have()) joined(message.have());
  const std::lock_guard lock(mutex);
  if (message.has_ack())
    for (; acknowledged < message.ack().messages() && !unacknowledged.empty(); ++acknowledged) {
      on_the_way -= unacknowledged.front();
      unacknowledged.pop_front();
    }
  if (message.has_summary()) summary = message.summary();
  for (const std::string& line : message.news().lines())
    if (news.size() < kMaxNews) news.push_back(line);
  changed.notify_all();
  return true;
}

void Link::Impl::push(std::string message, bool update) {
  {
    const std::lock_guard lock(mutex);
    if (generation != delta_generation || !shown.joined) return;  // of a connection that is gone
    if (update) {
      on_the_way += message.size();
      unacknowledged.push_back(message.size());
    }
    outbox.push_back(std::move(message));
  }
  asio::post(io, [this] { drain(); });
}

void Link::Impl::drain() {
  std::deque<std::string> messages;
  {
    const std::lock_guard lock(mutex);
    messages.swap(outbox);
  }
  if (!channel) return;
  for (std::string& message : messages) channel->send(std::move(message));
}

// False: there is more than there was room for, or no connection.
bool Link::Impl::offer(const RunHistory& run, bool state) {
  while (true) {
    bool reset = false;
    {
      const std::lock_guard lock(mutex);
      if (!shown.joined || on_the_way >= kMaxUnacknowledged) return false;
      reset = delta_generation != generation;
      if (reset) delta.reset(have);
      delta_generation = generation;
    }
    const Delta::Next next = delta.next(run, state || reset);
    if (next.empty) return true;
    push(next.message.SerializeAsString(), true);
    if (!next.more) return true;
    state = false;
  }
}

Link::Link(LinkOptions options) : impl_(std::make_shared<Impl>(std::move(options))) {
  asio::co_spawn(impl_->io, impl_->work(), asio::detached);
  sigset_t all, before;  // signals are for the agent's thread
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  std::thread([impl = impl_] {
    impl->io.run();
    const std::lock_guard lock(impl->mutex);
    impl->ended = true;
    impl->changed.notify_all();
  }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// The thread ends by itself once nothing is outstanding. A name that is being looked up can take
// long and cannot be called back: then the thread keeps what it needs, and is not waited for.
Link::~Link() {
  asio::post(impl_->io, [impl = impl_.get()] {
    impl->stopping = true;
    impl->pause.cancel();
    if (impl->channel) impl->channel->close();
  });
  std::unique_lock lock(impl_->mutex);
  impl_->changed.wait_for(lock, kEndWait, [this] { return impl_->ended; });
}

void Link::offer(const RunHistory& run, int64_t now_ns) {
  if (now_ns - impl_->offered_ns < kOfferEveryNs) return;
  impl_->offered_ns = now_ns;
  const bool state = now_ns - impl_->stated_ns >= kStateEveryNs;
  if (state) impl_->stated_ns = now_ns;
  (void)impl_->offer(run, state);
}

std::optional<pb::JobSummary> Link::finish(const RunHistory& run, std::optional<int> exit_code,
                                           int64_t deadline_ns) {
  Impl& impl = *impl_;
  const int64_t begin_ns = monotonic_ns();
  uint64_t stated = 0, said_goodbye = 0;  // generations
  while (monotonic_ns() < deadline_ns) {
    {
      std::unique_lock lock(impl.mutex);
      if (impl.summary) return impl.summary;
      if (impl.shown.refused) return std::nullopt;
      if (!impl.shown.joined && monotonic_ns() - begin_ns > kUnjoinedWaitNs) return std::nullopt;
      if (!impl.shown.joined || said_goodbye == impl.generation) {
        impl.changed.wait_for(lock, kLook);
        continue;
      }
    }
    const bool first = stated == 0 || stated != impl.delta_generation;
    const bool whole = impl.offer(run, first);
    stated = impl.delta_generation;
    if (!whole) {
      std::unique_lock lock(impl.mutex);
      impl.changed.wait_for(lock, kLook);
      continue;
    }
    pb::ToHub goodbye;
    if (exit_code)
      goodbye.mutable_goodbye()->set_exit_code(*exit_code);
    else
      goodbye.mutable_goodbye();
    impl.push(goodbye.SerializeAsString(), false);
    said_goodbye = impl.delta_generation;
  }
  const std::lock_guard lock(impl.mutex);
  return impl.summary;
}

std::vector<std::string> Link::news() {
  const std::lock_guard lock(impl_->mutex);
  return std::exchange(impl_->news, {});
}

Link::State Link::state() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->shown;
}

}  // namespace stepscope::hub
