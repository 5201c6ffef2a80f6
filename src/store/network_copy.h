// Where the database of a run folder is while it is written. SQLite's WAL needs shared memory and
// locks that network and FUSE file systems do not give: there the live database is in a private
// folder of $TMPDIR (else /tmp, /dev/shm), and the run folder gets a consistent copy.
//
//   local     <run folder>/run.db     written in place
//   network   <tmp>/stepscope-<uid>/db-<hash of the run folder>/run.db
//                 |  SQLite backup, rename
//                 v
//             <run folder>/run.db
//
// Thread safety: one owner. Invariant: <run folder>/run.db of a network folder is always a whole
// database of one file.
#pragma once

#include <cstdint>
#include <string>

#include "store/database.h"

namespace stepscope::store {

struct Placement {
  std::string final_path;  // <run folder>/run.db
  std::string live_path;   // where it is written; the same when local
  bool copied() const { return live_path != final_path; }
};

bool is_network_file_system(const std::string& folder);  // by statfs; false when it cannot be told

Result<Placement> place(
    const std::string& run_folder);  // makes the private folder when one is needed
Placement find_placed(
    const std::string& run_folder);  // for readers: makes nothing; live only if it exists

// Backup of `live` to placement.final_path, which is replaced in one step.
Status copy_to_final(Database& live, const Placement& placement);
void remove_live(const Placement& placement);

// Tests replace the question and the pause between copies.
struct NetworkPolicy {
  bool (*is_network)(const std::string& folder) = is_network_file_system;
  int64_t copy_every_ns = 60'000'000'000;
};
NetworkPolicy& network_policy();

}  // namespace stepscope::store
