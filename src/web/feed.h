// The live frames of one run, for as long as somebody watches: asks the site ten times a second at
// most, and once for all viewers.
//
// Thread safety: none; the server's thread (the site is asked on another). Lifetime: shared; run()
// keeps it until the last viewer has gone or the run has ended.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <memory>
#include <set>
#include <string>

#include "web/viewer.h"

namespace stepscope::web {

class Feed : public std::enable_shared_from_this<Feed> {
 public:
  static constexpr std::chrono::milliseconds kTick{100}, kSummary{1000};
  // A site that answers slowly is left alone for this many times what it took.
  static constexpr int kRest = 3;

  Feed(boost::asio::io_context& io, boost::asio::thread_pool& pool, Site& site, std::string run);

  void add(const std::shared_ptr<Viewer>& viewer);
  void remove(const std::shared_ptr<Viewer>& viewer);
  bool running() const { return running_; }
  void stop() { stopped_ = true; }

 private:
  static boost::asio::awaitable<void> run(std::shared_ptr<Feed> self);
  boost::asio::awaitable<bool> look();  // false: the run has ended
  boost::asio::awaitable<void> look_at_all();
  void end();  // the summary
  void say(const Site::Now& now);

  boost::asio::io_context& io_;
  boost::asio::thread_pool& pool_;
  Site& site_;
  std::string name_;
  // fresh: has got no frame yet; greeted: has got its first tick, and no summary yet.
  std::set<std::shared_ptr<Viewer>> viewers_, fresh_, greeted_;
  bool running_ = false, stopped_ = false;
  std::optional<int64_t> step_;
  Text summary_;
  std::chrono::steady_clock::time_point summary_due_{};
};

}  // namespace stepscope::web
