// The twelve phases of a step, in the order in which views show them.
//
// Phases are exclusive and add up to the step. A user's own phase has a number from kFirstUserPhase on;
// its name stands in the segment's name table (slot number - kFirstUserPhase).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace stepscope {

enum class Phase : uint8_t {
  kInput,
  kH2d,
  kForward,
  kBackward,
  kSync,
  kOptimizer,
  kCheckpoint,
  kValidation,
  kCompile,
  kGc,
  kProfiler,
  kOther,
};
inline constexpr int kPhaseCount = 12;
inline constexpr uint8_t kFirstUserPhase = 32;
inline constexpr int kMaxUserPhases = 64;

inline constexpr std::array<std::string_view, kPhaseCount> kPhaseNames = {
    "input",      "h2d",        "forward", "backward", "sync",     "optimizer",
    "checkpoint", "validation", "compile", "gc",       "profiler", "other"};

inline constexpr std::string_view phase_name(Phase p) {
  return kPhaseNames[static_cast<size_t>(p)];
}
inline std::optional<Phase> phase_from_name(std::string_view name) {
  for (int i = 0; i < kPhaseCount; ++i)
    if (kPhaseNames[static_cast<size_t>(i)] == name) return static_cast<Phase>(i);
  return std::nullopt;
}

}  // namespace stepscope
