// What node and hub agree on before they understand each other: versions and limits.
//
// Thread safety: constants and pure functions.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace stepscope::hub {

// Versions of hub.proto's messages after the handshake that this build speaks.
inline constexpr uint32_t kMinVersion = 1, kMaxVersion = 1;

inline constexpr size_t kNonceBytes = 32;
inline constexpr size_t kMaxHandshakeBytes = 16 << 10;  // of a message before the token is proved
inline constexpr size_t kMaxMessageBytes = 16 << 20;
inline constexpr std::chrono::seconds kHandshakeTime{10};  // TLS, HTTP, and the proofs together
inline constexpr std::chrono::seconds kIdleTime{30};       // without a byte: the peer is gone
inline constexpr int32_t kMaxRank = 1'000'000;

struct Versions {
  uint32_t min = kMinVersion, max = kMaxVersion;
};

// The newest that both speak; none: they do not overlap.
inline std::optional<uint32_t> common_version(const Versions& a, const Versions& b) {
  const uint32_t newest = a.max < b.max ? a.max : b.max;
  const uint32_t oldest = a.min > b.min ? a.min : b.min;
  if (newest < oldest || newest == 0) return std::nullopt;
  return newest;
}

}  // namespace stepscope::hub
