// How late each rank was in a step: how much longer its own work took, from sync point to sync point, than that of the
// fastest ranks (diagnosis.md section 2: the median of the fastest quarter, with fewer than eight ranks the fastest).
//
// From the sync points as the engine joins them, for the steps of which all ranks' are still kept and known. Elsewhere
// a rank's own time, the step without sync, stands for its work: fastest() is the same measure of those.
//
// Thread safety: none. Cost: one pass over the raw steps of the range.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/history.h"
#include "report/pieces.h"

namespace stepscope::report {

class Lateness {
 public:
  Lateness(const RunHistory& run, const StepRange& range);

  // Of the rank at the position in RunHistory::ranks, in a job step. None: not known from sync points.
  std::optional<double> ns(size_t position, int64_t step) const;
  // Whether a rank's own time means something: several ranks, whose waiting was measured.
  bool knows_own() const { return knows_own_; }

 private:
  size_t ranks_ = 0;
  int64_t first_ = 0;
  std::vector<float> late_ns_;  // by step, then position; below 0: not known
  bool knows_own_ = false;
};

// The work of the fastest ranks: the median of the fastest quarter. work: not empty, is reordered.
float fastest(std::vector<float>& work);

}  // namespace stepscope::report
