// The node's side of the state that is kept in step: what a history holds that the hub has not.
//
// Thread safety: none, one owner. Invariant: a message holds a bounded part, oldest first; the
// totals of a rank go with its newest step, never before.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "hub/hub.pb.h"
#include "model/history.h"

namespace stepscope::hub {

class Delta {
 public:
  static constexpr size_t kStepsOfMessage = 2000;  // 16 MB is the most that one may have

  void reset(const pb::Have& have);  // what the hub says that it has

  // The next Update, empty when the hub has everything. state: with the small values too, which
  // are sent whole each time: counters, gauges, notices, what the ranks do.
  struct Next {
    pb::ToHub message;
    bool empty = true;
    bool more = false;  // another is needed for the rest
  };
  Next next(const RunHistory& run, bool state);

 private:
  struct Sent {
    int64_t begin_ns = 0, step = -1, memory_ns = 0;
  };
  std::map<int32_t, Sent> sent_;
};

}  // namespace stepscope::hub
