// The spans that are open on the step thread, outermost first.
//
// Thread safety: none, one owner. Bounded: kDepth spans; deeper ones are counted, so that their ends
// find nothing, and give no record.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "agent/record.h"

namespace stepscope::agent {

struct OpenSpan {
  int64_t t0_ns = 0;
  uint8_t phase = 0;
  uint8_t flags = 0;  // SpanFlags that were known at the begin
};

class PhaseStack {
 public:
  static constexpr size_t kDepth = 64;

  void push(uint8_t phase, uint8_t flags, int64_t t_ns) {
    if (size_ >= kDepth)
      ++too_deep_;
    else
      open_[size_++] = {t_ns, phase, flags};
  }

  // Takes off the innermost span of this phase and what was begun inside it and never ended. False:
  // it was not begun here, or too deep.
  bool pop(uint8_t phase, OpenSpan& span) {
    if (too_deep_ > 0) {
      --too_deep_;
      return false;
    }
    for (size_t i = size_; i-- > 0;) {
      if (open_[i].phase != phase) continue;
      span = open_[i];
      size_ = i;
      return true;
    }
    return false;
  }

  const OpenSpan* top() const { return size_ == 0 ? nullptr : &open_[size_ - 1]; }
  void clear() { size_ = too_deep_ = 0; }
  bool sane() const {  // of state from a file: no field leads outside
    if (size_ > kDepth) return false;
    for (const OpenSpan& span : open_)
      if (!is_time(span.t0_ns)) return false;
    return true;
  }

 private:
  std::array<OpenSpan, kDepth> open_{};
  size_t size_ = 0;
  size_t too_deep_ = 0;
};

}  // namespace stepscope::agent
