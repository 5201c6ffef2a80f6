#include "store/sync_blob.h"

#include <bit>
#include <cstring>

namespace stepscope::store {
namespace {

struct Row {
  uint64_t group;
  uint32_t index, members;
  int64_t ready_ns, leave_ns;
  uint64_t together;
};
static_assert(sizeof(Row) == 40 && std::endian::native == std::endian::little);

}  // namespace

std::string to_blob(const std::vector<SyncPoint>& syncs) {
  std::string bytes(syncs.size() * sizeof(Row), '\0');
  size_t at = 0;
  for (const SyncPoint& s : syncs) {
    const Row row{s.group, s.index, s.members, s.ready_ns, s.leave_ns, s.together ? 1u : 0u};
    std::memcpy(bytes.data() + at, &row, sizeof(Row));
    at += sizeof(Row);
  }
  return bytes;
}

std::vector<SyncPoint> from_blob(std::string_view bytes) {
  std::vector<SyncPoint> syncs;
  syncs.reserve(bytes.size() / sizeof(Row));
  for (; bytes.size() >= sizeof(Row); bytes.remove_prefix(sizeof(Row))) {
    Row row;
    std::memcpy(&row, bytes.data(), sizeof(Row));
    syncs.push_back(
        {row.group, row.index, row.members, row.ready_ns, row.leave_ns, row.together != 0});
  }
  return syncs;
}

}  // namespace stepscope::store
