// The tables of run.db back into the history that was written.
//
// Thread safety: one owner of the connection. The file is treated as data: kinds, levels and
// numbers are bounded.
#pragma once

#include <string>
#include <vector>

#include "model/history.h"
#include "store/database.h"
#include "store/store.h"

namespace stepscope::store {

// One consistent state, whatever a writer does meanwhile. Call identify() first.
Result<RunHistory> read_history(Database& database, const std::string& run_folder);
Result<std::vector<SegmentPosition>> read_positions(Database& database);

}  // namespace stepscope::store
