// What a process's step thread does at this moment, as far as its events were read. Plain value.
#pragma once

#include <cstdint>

#include "model/phase.h"

namespace stepscope::agent {

struct Now {
  uint8_t phase = static_cast<uint8_t>(Phase::kOther);  // innermost; or validation, or other
  uint64_t step = 0;
  int64_t since_ns = 0;  // 0: nothing was seen yet
};

}  // namespace stepscope::agent
