// A run read in pieces, for what is too large for memory: all but its raw steps, then those of one rank at a time.
//
// Thread safety: one owner. Invariant: all pieces are of one state of the run, whatever its writer does meanwhile.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/history.h"
#include "store/read_only.h"

namespace stepscope::store {

class Reading {
 public:
  static Result<Reading> open(const std::string& run_folder);

  // RankHistory::raw is empty, and phases_seen is of the rollups alone.
  const RunHistory& run() const { return run_; }
  // What RankHistory::raw would be.
  Result<KeptList<StepSample>> steps(int32_t rank);

 private:
  explicit Reading(ReadOnly file) : file_(std::move(file)) {}
  ReadOnly file_;
  RunHistory run_;
};

}  // namespace stepscope::store
