// What co_await gives of an operation on a connection: its outcome, where the peer may be gone at any time.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace stepscope::web {

constexpr auto kNoThrow = boost::asio::as_tuple(boost::asio::use_awaitable);

}  // namespace stepscope::web
