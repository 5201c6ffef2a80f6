// Runs what may take a while on a thread of a pool, and goes on with its result on the caller's own.
//
// Thread safety: the caller's coroutine goes on where it was. Lifetime: `what` outlives the wait.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <functional>
#include <optional>

namespace stepscope::web {

template <typename T>
boost::asio::awaitable<T> on_pool(boost::asio::thread_pool& pool, std::function<T()> what) {
  std::optional<T> out;  // T need not be default constructible
  const auto work = [&]() -> boost::asio::awaitable<void> {
    out.emplace(what());
    co_return;
  };
  co_await boost::asio::co_spawn(pool, work, boost::asio::use_awaitable);
  co_return std::move(*out);
}

}  // namespace stepscope::web
