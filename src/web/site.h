// What a TCP server shows: the runs, in whatever way they are known. Implemented by the command
// line, which has run folders and agents; the server knows neither.
//
// Thread safety: every function is called by several threads at once and may take a while; none of
// them is called for a stranger.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "serve/loop.h"

namespace stepscope::web {

// JSON texts that many viewers share.
using Text = std::shared_ptr<const std::string>;

class Site {
 public:
  virtual ~Site() = default;

  // Everything but the page and the live frames.
  virtual serve::Reply answer(const serve::Request& request) = 0;

  // The run whose live frames the path asks for; absent: none.
  virtual std::optional<std::string> live_run(std::string_view path) = 0;

  // What the run is like now. The tick is one JSON object with the steps after `since`.
  struct Now {
    bool ended = false;
    std::optional<int64_t> step;  // the newest
    std::string tick;
  };
  virtual Result<Now> now(const std::string& run, std::optional<int64_t> since) = 0;
  virtual Result<std::string> summary(const std::string& run) = 0;  // compact JSON
};

}  // namespace stepscope::web
