// What is said on stderr while the run goes on: a line when a finding opens, and one when it closes.
//
// Only what names a culprit or a change (findings with a pattern, STUCK), from warning on and certain: shares of
// the step are for the card. Thread safety: none, one owner. Bounded: kMostLines in all, and its own work is kept
// under a hundredth of the time.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "model/finding.h"
#include "model/history.h"

namespace stepscope::cli {

class LiveFindings {
 public:
  static constexpr int kMostLines = 100;

  // The lines that are due. clock: monotonic ns, to measure what looking costs.
  std::vector<std::string> update(const RunHistory& run, int64_t now_ns, int64_t (*clock)());
  // The same for who has the findings already.
  std::vector<std::string> lines(const std::vector<Finding>& findings);

 private:
  bool due(const RunHistory& run, int64_t now_ns) const;

  std::set<std::string> open_;  // code and whom it names
  std::set<std::string> said_;  // of the run as a whole: once
  size_t episodes_seen_ = 0, episodes_open_ = 0;
  int64_t next_look_ns_ = 0;
  int said_lines_ = 0;
};

}  // namespace stepscope::cli
