#include "web/feed.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>

#include "web/no_throw.h"
#include "web/on_pool.h"

namespace stepscope::web {
namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;
namespace {

Text shared(std::string text) { return std::make_shared<const std::string>(std::move(text)); }

// {...} and {..., "gap":true}
std::string with_gap(std::string object) {
  if (object.empty() || object.back() != '}') return object;
  object.pop_back();
  return object + ",\"gap\":true}";
}

}  // namespace

Feed::Feed(asio::io_context& io, asio::thread_pool& pool, Site& site, std::string run)
    : io_(io), pool_(pool), site_(site), name_(std::move(run)) {}

void Feed::add(const std::shared_ptr<Viewer>& viewer) {
  viewers_.insert(viewer);
  fresh_.insert(viewer);
  if (running_ || stopped_) return;
  running_ = true;
  asio::co_spawn(io_, run(shared_from_this()), asio::detached);
}

void Feed::remove(const std::shared_ptr<Viewer>& viewer) {
  viewers_.erase(viewer);
  fresh_.erase(viewer);
  greeted_.erase(viewer);
}

void Feed::say(const Site::Now& now) {
  const bool news = !step_ || now.step != step_ || now.ended;
  step_ = now.step;
  if (!news && fresh_.empty()) return;
  const Text plain = shared(now.tick), gap = shared(with_gap(now.tick));
  for (const auto& viewer : news ? viewers_ : fresh_) viewer->tick(plain, gap);
  greeted_.merge(fresh_);
  fresh_.clear();
}

asio::awaitable<bool> Feed::look() {
  const auto now = co_await on_pool<Result<Site::Now>>(
      pool_, [this, since = step_] { return site_.now(name_, since); });
  if (!now) co_return true;  // its agent is busy, or about to end: it will tell
  say(*now);
  co_return !now->ended;
}

asio::awaitable<void> Feed::look_at_all() {
  const auto text =
      co_await on_pool<Result<std::string>>(pool_, [this] { return site_.summary(name_); });
  if (!text) co_return;
  std::string frame = R"({"type":"summary","summary":)" + *text + "}";
  const bool news = !summary_ || *summary_ != frame;
  if (news) summary_ = shared(std::move(frame));
  for (const auto& viewer : news ? viewers_ : greeted_) viewer->summary(summary_);
  greeted_.clear();
}

// Those who came while the last frames were made stay: they have seen nothing yet.
void Feed::end() {
  for (const auto& viewer : std::exchange(viewers_, fresh_))
    if (!fresh_.contains(viewer)) viewer->end();
}

asio::awaitable<void> Feed::run(std::shared_ptr<Feed> self) {
  asio::steady_timer timer(self->io_);
  while (!self->stopped_ && !self->viewers_.empty()) {
    const auto begin = Clock::now();
    const bool goes_on = co_await self->look();
    if (!goes_on || !self->greeted_.empty() || begin >= self->summary_due_) {
      const auto asked = Clock::now();
      co_await self->look_at_all();
      const auto took = Clock::now() - asked;
      self->summary_due_ = asked + std::max<Clock::duration>(kSummary, kRest * took);
    }
    if (!goes_on) self->end();
    timer.expires_at(begin + std::max<Clock::duration>(kTick, kRest * (Clock::now() - begin)));
    co_await timer.async_wait(kNoThrow);
  }
  self->running_ = false;
  self->step_.reset();
}

}  // namespace stepscope::web
