// Where late ranks stand when a run is stuck: what py-spy says of their processes, where it is installed.
//
//   late ranks --> py-spy dump --nonblocking --pid P --> "rank 1 stands in read (data.py:20) < fetch (fetch.py:54) < ..."
//
// The process that is looked at is not paused, and nothing is loaded into it. Thread safety: none; the agent's
// thread, which never waits here. Bounded: one py-spy at a time, kTimeNs each, each rank once while it is stuck,
// kMost in a run. Without py-spy, or where it may not look, nothing is said: the finding's advice names it.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/fd.h"
#include "model/history.h"

namespace stepscope::cli {

class Stacks {
 public:
  static constexpr int kMost = 64;
  static constexpr int64_t kTimeNs = 10'000'000'000;

  ~Stacks();
  // The sentence that has become ready, if any.
  std::optional<std::string> tick(const RunHistory& run, int64_t now_ns);

 private:
  struct Wanted {
    int32_t rank = 0, pid = 0;
    int64_t step = 0;
  };
  void begin(const Wanted& wanted, int64_t now_ns);
  std::optional<std::string> read();
  void end();

  std::set<int32_t> asked_;  // of this time that it is stuck
  std::deque<Wanted> waiting_;
  Wanted now_;
  int32_t process_ = -1;
  Fd output_;
  std::string text_;
  int64_t begun_ns_ = 0;
  int begun_ = 0;
};

// The innermost frames of the main thread in py-spy's text, innermost first; empty: there are none.
std::string frames_of(const std::string& dump);

}  // namespace stepscope::cli
