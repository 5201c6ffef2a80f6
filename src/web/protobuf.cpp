#include "web/protobuf.h"

namespace stepscope::web::protobuf {
namespace {

constexpr uint64_t kVarint = 0, kFixed64 = 1, kBytes = 2;
constexpr char kLongLiteral = static_cast<char>(0xfc);

std::string raw_varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7f) | 0x80);
  return out + static_cast<char>(value);
}

std::string little_endian(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>((value >> (8 * i)) & 0xff);
  return out;
}

std::string tag(int field, uint64_t kind) {
  return raw_varint(static_cast<uint64_t>(field) << 3 | kind);
}

}  // namespace

std::string varint(int field, uint64_t value) { return tag(field, kVarint) + raw_varint(value); }

std::string fixed64(int field, uint64_t value) {
  return tag(field, kFixed64) + little_endian(value, 8);
}

std::string text(int field, std::string_view bytes) {
  std::string out = tag(field, kBytes) + raw_varint(bytes.size());
  out += bytes;
  return out;
}

std::string snappy_block(std::string_view bytes) {
  std::string out = raw_varint(bytes.size());
  if (bytes.empty()) return out;
  out += kLongLiteral;
  out += little_endian(bytes.size() - 1, 4);
  out += bytes;
  return out;
}

}  // namespace stepscope::web::protobuf
