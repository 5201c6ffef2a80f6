// The stacked bar of phases and its legend.
//
// Thread safety: pure functions. Invariant: every part that is shown has at least one cell, and the
// cells add up.
#pragma once

#include <string>
#include <vector>

#include "report/summary.h"

namespace stepscope::report {

struct BarPart {
  std::string name;   // made visible and cut
  std::string glyph;  // one column
  double share = 0;
  double mean_ms = 0;
  int cells = 0;
  bool of_verdict = false;
};

inline constexpr double kLeastShare = 0.0005;  // what rounds to 0.0 % is folded away

// The phases with time in them, in their order; `width` cells are dealt out by largest remainder.
std::vector<BarPart> bar_parts(const Summary& summary, int width, bool unicode);

std::vector<std::string> legend(const std::vector<BarPart>& parts, int width);

std::string duration(double ms);  // "0.241 ms", "38.1 ms", "100 ms", "2.41 s", "71.2 s"
std::string percent(double share);

}  // namespace stepscope::report
