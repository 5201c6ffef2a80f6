// The sync points of a step as one BLOB: 40 bytes each, little-endian: group (8), index (4), members (4),
// ready_ns (8), leave_ns (8), together (8).
//
// Thread safety: pure. Invariant: any bytes can be read; what is no whole point is dropped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/sync_point.h"

namespace stepscope::store {

std::string to_blob(const std::vector<SyncPoint>& syncs);
std::vector<SyncPoint> from_blob(std::string_view bytes);

}  // namespace stepscope::store
