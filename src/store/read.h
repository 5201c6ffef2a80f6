// The tables of run.db back into the history that was written.
//
// Thread safety: one owner of the connection. The file is treated as data: kinds, levels and
// numbers are bounded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/history.h"
#include "store/database.h"
#include "store/store.h"

namespace stepscope::store {

// One consistent state, whatever a writer does meanwhile. A database before its first commit is an empty live run.
Result<RunHistory> read_database(Database& database, const std::string& run_folder);

// Within a transaction of the caller's, after identify(). Without raw steps: RankHistory::raw is empty then, and
// phases_seen is of the rollups alone.
enum class RawSteps { kAll, kNone };
Result<RunHistory> read_history(Database& database, const std::string& run_folder, RawSteps raw);
Result<KeptList<StepSample>> read_steps(Database& database, int32_t rank);

Result<std::vector<SegmentPosition>> read_positions(Database& database);

}  // namespace stepscope::store
