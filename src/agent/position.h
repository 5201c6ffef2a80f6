// Where to go on in a segment after a restart. Plain value.
#pragma once

#include <cstdint>
#include <string>

namespace stepscope::agent {

// Same fields as store::SegmentPosition.
struct Position {
  int32_t pid = 0;
  uint64_t nonce = 0;
  uint64_t next_index = 0;  // the first event that is still needed
  std::string state;        // of the timeline before that event (save_state)
};

}  // namespace stepscope::agent
