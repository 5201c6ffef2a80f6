// run.db: a run's history in SQLite, the only truth that outlives the processes.
//
// Thread safety: one owner, one thread; other processes may read() at any time. Lifetime: create or
// open -> any number of commits -> finish. A killed owner leaves the last whole commit. A commit
// that fails (disk full, folder gone) stores nothing and may be followed by others: the next one
// that succeeds also stores what the failed ones missed. In place on local file systems (WAL while
// live, one file after finish); on a network file system in $TMPDIR with a copy in the run folder
// at most every 60 s and at the end (network_copy.h). Invariant: after a commit the file holds
// exactly the history that it was given: bounded as the history is.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/finding.h"
#include "model/history.h"

namespace stepscope::store {

struct SegmentPosition {
  int32_t pid = 0;
  uint64_t nonce = 0;
  uint64_t next_index = 0;  // the first event that is not in the history yet
  std::string state;        // bytes: what the agent knew before it
};

// What a commit stores beside the history, in the same transaction.
struct Batch {
  std::vector<SegmentPosition> positions;  // those that moved
};

class Store {
 public:
  static Result<Store> create(
      const std::string& run_folder);  // the folder exists and holds no run.db
  static Result<Store> open(
      const std::string& run_folder);  // to go on, or to finish what a kill left
  static Result<RunHistory> read(
      const std::string& run_folder);  // live, ended, or left by a kill; changes nothing
  // RunHistory::live of it, and no more is read.
  static Result<bool> is_live(const std::string& run_folder);
  // The bytes that finish() was given with just this history; empty: none, or the run has not ended.
  static Result<std::string> summary(const std::string& run_folder);

  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  Status commit(const RunHistory& run, const Batch& batch);
  Result<RunHistory> load();
  Result<std::vector<SegmentPosition>> positions();
  // State ended, findings, one file. A later commit makes the run live again. summary: kept beside them, for
  // Store::summary.
  Status finish(const RunHistory& run, const std::vector<Finding>& findings,
                std::string_view summary = {});

 private:
  struct Impl;
  explicit Store(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace stepscope::store
