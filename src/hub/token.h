// The token that node and hub share, and its proofs. It is read from a file, kept in memory, and
// never sent, logged or stored: each side shows that it has it by an HMAC-SHA256 over both sides'
// nonces and who is speaking, so that a proof is worth nothing to anybody who hears it.
//
// Thread safety: reentrant; a Token is a plain value. Invariant: at least kMinTokenBytes, so that a
// proof that was heard cannot be tried against all tokens.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace stepscope::hub {

inline constexpr size_t kMinTokenBytes = 16, kMaxTokenBytes = 4096;

struct Token {
  std::string secret;
};

// The file's content without white space around it. An Error when it is missing, too short, or readable by others.
Result<Token> read_token(const std::string& path);

std::string make_nonce();  // kNonceBytes random bytes; empty when the system has none

enum class Speaker { kNode, kHub };
std::string proof(const Token& token, Speaker who, std::string_view node_nonce,
                  std::string_view hub_nonce, uint32_t version);
bool equal_in_constant_time(std::string_view a, std::string_view b);

std::string sha256(std::string_view bytes);  // 32 bytes
std::string hex(std::string_view bytes);

}  // namespace stepscope::hub
