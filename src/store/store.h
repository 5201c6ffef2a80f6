// run.db: a run's history in SQLite, the only truth that outlives the processes.
//
// Thread safety: one owner, one thread. Lifetime: open -> any number of commits -> finish. A killed owner leaves the
// last commit. Full disk, read-only, corrupt: an Error that names the file; the caller goes on without storing.
// In place on local file systems (WAL while live, journal_mode=DELETE after finish); on a network file system in
// TMPDIR with a copy (SQLite backup, rename) in the run folder each 60 s and at the end.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/finding.h"
#include "model/history.h"

namespace stepscope::store {

struct SegmentPosition { int32_t pid; uint64_t nonce; uint64_t next_index; };

// What one commit adds; everything in one transaction.
struct Batch {
  std::vector<StepSample> steps;                                    // raw, warmup flag set
  std::vector<std::pair<int32_t, std::pair<int, StepBlock>>> rollups;  // rank, (level, block)
  std::vector<Occurrence> occurrences;
  std::vector<SegmentPosition> positions;
};

class Store {
 public:
  static Result<Store> create(const std::string& run_folder);
  static Result<Store> open(const std::string& run_folder);  // to go on, or to recover
  static Result<RunHistory> read(const std::string& run_folder);  // read-only: live, ended, or left by a kill

  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  // Also writes the run's and ranks' own rows (identity, counts, gauges, notices) from `run`.
  Status commit(const RunHistory& run, const Batch& batch);
  Result<RunHistory> load() const;
  Result<std::vector<SegmentPosition>> positions() const;
  Status finish(const RunHistory& run, const std::vector<Finding>& findings);  // state ended, one file

 private:
  struct Impl;
  explicit Store(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace stepscope::store
