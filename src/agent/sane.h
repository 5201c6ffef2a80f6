// For state that comes back from a file: looks at fields without believing that they hold a value
// of their type. Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <cstring>

#include "agent/record.h"

namespace stepscope::agent {

// A bool whose byte is neither 0 nor 1 must not be read as one.
inline bool is_bool(const bool& field) {
  uint8_t byte;
  static_assert(sizeof(byte) == sizeof(field));
  std::memcpy(&byte, &field, sizeof(byte));
  return byte <= 1;
}
template <typename... Fields>
bool are_bools(const Fields&... fields) {
  return (is_bool(fields) && ...);
}
template <typename... Times>
bool are_times(const Times&... times_ns) {
  return (is_time(times_ns) && ...);
}
// Counters of what is open: far from overflow in either direction.
inline bool is_depth(int depth) { return 0 <= depth && depth <= (1 << 30); }

}  // namespace stepscope::agent
