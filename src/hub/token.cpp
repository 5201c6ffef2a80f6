#include "hub/token.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/text.h"
#include "hub/protocol.h"

namespace stepscope::hub {

Result<Token> read_token(const std::string& path) {
  struct stat st;
  if (::stat(path.c_str(), &st) == 0 && (st.st_mode & 077) != 0)
    return Error{"the token file " + path + " can be read by other users",
                 "chmod 600 " + shell_quote(path)};
  const auto content = read_file(path, kMaxTokenBytes + 64);
  if (!content)
    return Error{"cannot read the token file: " + content.error().message,
                 "make one: (umask 077; openssl rand -hex 32 > " + shell_quote(path) + ")"};
  const std::string_view secret = trim(*content);
  if (secret.size() < kMinTokenBytes || secret.size() > kMaxTokenBytes)
    return Error{"the token in " + path + " has " + std::to_string(secret.size()) +
                     " bytes; it must have " + std::to_string(kMinTokenBytes) + " to " +
                     std::to_string(kMaxTokenBytes),
                 "make one: (umask 077; openssl rand -hex 32 > " + shell_quote(path) + ")"};
  return Token{std::string(secret)};
}

std::string make_nonce() {
  std::string nonce(kNonceBytes, '\0');
  auto* bytes = reinterpret_cast<unsigned char*>(nonce.data());
  return RAND_bytes(bytes, static_cast<int>(nonce.size())) == 1 ? nonce : std::string();
}

std::string proof(const Token& token, Speaker who, std::string_view node_nonce,
                  std::string_view hub_nonce, uint32_t version) {
  // Both nonces have one length, so that no two different inputs give the same text.
  std::string text = who == Speaker::kNode ? "stepscope node\n" : "stepscope hub\n";
  text += std::to_string(version) + "\n";
  text += node_nonce;
  text += hub_nonce;
  unsigned char mac[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (HMAC(EVP_sha256(), token.secret.data(), static_cast<int>(token.secret.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), mac, &size) == nullptr)
    return "";
  return {reinterpret_cast<const char*>(mac), size};
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  return !a.empty() && a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string sha256(std::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr) != 1) return "";
  return {reinterpret_cast<const char*>(digest), size};
}

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 15];
  }
  return out;
}

}  // namespace stepscope::hub
