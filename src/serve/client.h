// Asks a run's agent something over its Unix socket.
//
// Thread safety: reentrant. Waits at most `wait` in all; an agent that is gone, stopped or slow is
// an Error.
#pragma once

#include <chrono>
#include <string>

#include "base/result.h"
#include "serve/loop.h"

namespace stepscope::serve {

// Whatever it answers; an Error when no answer came.
Result<Reply> exchange(const std::string& socket_path, const Request& request,
                       std::chrono::milliseconds wait);

// The body of a reply with status 200.
Result<std::string> ask(const std::string& socket_path, const Request& request,
                        std::chrono::milliseconds wait);

}  // namespace stepscope::serve
