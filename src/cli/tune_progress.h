// The tuner's progress on stderr: one line that is rewritten on a terminal, a line a trial elsewhere.
//
// Thread safety: one thread. Invariant: what it leaves on the terminal is whole lines.
#pragma once

#include <cstdint>
#include <string>

namespace stepscope::cli {

class TuneProgress {
 public:
  explicit TuneProgress(bool quiet);
  void begin(int trial, int of, const std::string& settings, int steps);
  void update(int steps, double seconds);
  void end(const std::string& outcome);

 private:
  bool quiet_, terminal_;
  int trial_ = 0, of_ = 0, wanted_ = 0;
  std::string settings_;
  int64_t drawn_ns_ = 0;
};

}  // namespace stepscope::cli
