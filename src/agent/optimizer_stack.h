// The Optimizer.step calls that are open: nested ones (a subclass that calls super().step(), a
// wrapper that steps its base), closures that run forward and backward inside, and steps that
// raised, whose end nobody reports.
//
// Thread safety: none, one owner. Bounded: kMaxOpen levels, what is deeper is not seen.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "agent/sane.h"

namespace stepscope::agent {

struct OpenOptimizer {
  uint64_t id = 0;
  int64_t begin_ns = 0;
  uint32_t nested = 0;       // calls of the same optimizer's step inside
  bool worked = false;       // forward or backward ran inside
  bool work_raised = false;  // and the last of them raised
  bool inner_ended = false;  // another optimizer's step ended inside
};

class OptimizerStack {
 public:
  static constexpr size_t kMaxOpen = 8;

  bool empty() const { return count_ == 0; }
  int64_t outermost_begin_ns() const { return open_[0].begin_ns; }

  struct Begun {
    bool is_span;
    size_t dropped;
  };
  // The same optimizer again: nested, when nothing ran in between; else the earlier one raised and
  // is dropped, with all that opened inside it.
  Begun begin(uint64_t id, int64_t t_ns);
  struct Ended {
    bool is_span;
    bool outermost;
    size_t dropped;
  };
  Ended end(uint64_t id);

  void work_begun();
  void work_ended(bool raised);
  bool surely_raised() const;  // asked at a fetch outside forward and backward
  size_t drop_all();
  bool sane() const;  // of state from a file: no field leads outside

 private:
  size_t drop_from(size_t index);

  std::array<OpenOptimizer, kMaxOpen> open_{};
  size_t count_ = 0;
};

inline size_t OptimizerStack::drop_from(size_t index) {
  const size_t dropped = count_ - index;
  count_ = index;
  return dropped;
}
inline size_t OptimizerStack::drop_all() { return drop_from(0); }

inline OptimizerStack::Begun OptimizerStack::begin(uint64_t id, int64_t t_ns) {
  size_t dropped = 0;
  for (size_t i = 0; i < count_; ++i) {
    if (open_[i].id != id) continue;
    if (!open_[i].worked) {
      ++open_[i].nested;
      return {false, 0};
    }
    dropped = drop_from(i);
    break;
  }
  if (count_ == kMaxOpen) return {false, dropped};
  open_[count_++] = OpenOptimizer{.id = id, .begin_ns = t_ns};
  return {true, dropped};
}

inline OptimizerStack::Ended OptimizerStack::end(uint64_t id) {
  for (size_t i = count_; i-- > 0;) {
    if (open_[i].id != id) continue;
    if (open_[i].nested > 0) {
      --open_[i].nested;
      return {false, false, 0};
    }
    const size_t dropped = drop_from(i) - 1;
    for (size_t outer = 0; outer < i; ++outer) open_[outer].inner_ended = true;
    return {true, i == 0, dropped};
  }
  return {false, false, 0};
}

inline void OptimizerStack::work_begun() {
  for (size_t i = 0; i < count_; ++i) {
    open_[i].worked = true;
    open_[i].work_raised = false;
  }
}
inline void OptimizerStack::work_ended(bool raised) {
  for (size_t i = 0; i < count_; ++i) open_[i].work_raised = raised;
}
inline bool OptimizerStack::surely_raised() const {
  if (count_ == 0) return false;
  const OpenOptimizer& top = open_[count_ - 1];
  return !top.worked || top.work_raised || top.inner_ended;
}
inline bool OptimizerStack::sane() const {
  if (count_ > kMaxOpen) return false;
  for (const OpenOptimizer& o : open_)
    if (!is_time(o.begin_ns) || !are_bools(o.worked, o.work_raised, o.inner_ended)) return false;
  return true;
}

}  // namespace stepscope::agent
