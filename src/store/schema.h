// The tables of run.db, and what kind of file a database is.
//
//   runs                 one row: the run
//   command              its arguments, one a row          settings    the effective ones
//   ranks                one row a rank: identity and counts
//   steps                the newest raw steps of each rank
//   step_user_phases     the user's own phases of these
//   rollups              blocks of 10, 100, ... steady steps of each rank
//   rollup_user_phases   likewise
//   occurrences          the newest of each kind and rank
//   occurrence_totals    count and time of all of them
//   memory               one reading a row and rank
//   nodes, gauges        host readings: sum, peak and count of each
//   events               notices, and interpreters that were not observed
//   findings             as in diagnosis: lists are JSON
//   summary              of an ended run, bytes of its writer's own: what was found when it ended
//   positions            how far each segment was drained, and what was known there (bytes)
//
// Thread safety: pure functions over a connection. Invariant: PRAGMA user_version is kSchemaVersion
// once the tables exist, and both appear in one transaction.
#pragma once

#include "store/database.h"

namespace stepscope::store {

// 1 had no positions.state, 2 no steps.syncs, 3 neither recompute nor loaders, 4 neither a summary
// nor disk_wait_share and what follows
inline constexpr int kSchemaVersion = 5;
inline constexpr int kApplicationId = 0x53745363;  // "StSc"

enum class Content { kEmpty, kRun };  // kEmpty: killed before the tables were made

// An error for a file that is no database, not ours, or of a newer stepscope.
Result<Content> identify(Database& database);
Status create_tables(Database& database);
// Of an earlier stepscope: to this version, before anything is written. Reading needs none of it.
Status upgrade(Database& database);

}  // namespace stepscope::store
