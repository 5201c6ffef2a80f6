// The spans that are open on the step thread, outermost first.
//
// Thread safety: none, the step thread's. No allocation: kDepth spans; deeper ones are counted, so
// that their ends find nothing, and are not recorded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace stepscope::recorder {

struct OpenSpan {
  int64_t t0_ns = 0;
  uint8_t phase = 0;
  uint8_t flags = 0;  // wire::SpanFlags that were known at the begin
};

class PhaseStack {
 public:
  static constexpr size_t kDepth = 64;

  void push(uint8_t phase, uint8_t flags, int64_t t_ns) {
    // once: a second thread that is taken for the step thread must not lead outside
    const size_t size = size_;
    if (size >= kDepth) {
      ++too_deep_;
      return;
    }
    open_[size] = {t_ns, phase, flags};
    size_ = size + 1;
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

  const OpenSpan* top() const {
    const size_t size = size_;
    return size == 0 ? nullptr : &open_[size - 1];
  }
  void clear() { size_ = too_deep_ = 0; }

 private:
  std::array<OpenSpan, kDepth> open_{};
  size_t size_ = 0;
  size_t too_deep_ = 0;
};

}  // namespace stepscope::recorder
