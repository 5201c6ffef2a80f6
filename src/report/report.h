// The one view-model that every view reads. Built from history and findings; a view formats, it
// never computes.
//
// Thread safety: plain values, pure functions.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/finding.h"
#include "model/history.h"
#include "report/summary.h"

namespace stepscope::report {

Summary summarize(const RunHistory& run, const std::vector<Finding>& findings);

std::string to_json(const Summary& summary,
                    bool pretty = true);  // docs/reference/summary.schema.json

struct CardStyle {
  bool colour = false;
  bool unicode = true;
  int width = 80;
};
std::string card(const Summary& summary, const CardStyle& style);

// What is the case now: the verdict, what was found and when, who does what. `stepscope status`.
std::string status(const Summary& summary, const CardStyle& style);

// Hosts that were late for at least half of the run, by name: for a scheduler's list of hosts to avoid.
std::vector<std::string> chronically_late_nodes(const Summary& summary);

// Of the environment and the stream: NO_COLOR, not a terminal, LANG/LC_* not UTF-8.
CardStyle style_for(int fd);

}  // namespace stepscope::report
