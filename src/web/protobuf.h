// Fields of protobuf messages as bytes, and the Snappy block that remote-write wraps them in.
//
// Thread safety: pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stepscope::web::protobuf {

std::string varint(int field, uint64_t value);
std::string fixed64(int field, uint64_t value);       // double: its bits
std::string text(int field, std::string_view bytes);  // string, bytes, or a message

// A valid block that compresses nothing: the length, then one literal. What is sent is a few
// kilobytes every ten seconds.
//   varint length | tag 0xfc: a literal whose length - 1 follows in 4 bytes | the bytes
std::string snappy_block(std::string_view bytes);

}  // namespace stepscope::web::protobuf
