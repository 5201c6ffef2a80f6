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
// What a summary says of the run's folder: its path, its files, the next command. Empty: it has none.
void place(Summary& summary, const std::string& folder);

// docs/reference/summary.schema.json. kCompact: on one line. kBrief: that without what has an entry a rank (ranks, now,
// loaders), for who asks for those in pieces.
enum class JsonForm : uint8_t { kPretty, kCompact, kBrief };
std::string to_json(const Summary& summary, JsonForm form = JsonForm::kPretty);

struct CardStyle {
  bool colour = false;
  bool unicode = true;
  int width = 80;
};
std::string card(const Summary& summary, const CardStyle& style);

// What is the case now: the verdict, what was found and when, who does what. `stepscope status`.
std::string status(const Summary& summary, const CardStyle& style);

// Hosts that were late for at least half of the run, by name: for a scheduler's list of hosts to avoid. From
// summary.json's text, whoever wrote it: a node's folder has that of the hub.
struct LateNodes {
  std::vector<std::string> nodes;
  int64_t ranks = 0,
          world_size = 0;  // seen, and of the run: where some are missing so may be late nodes
};
Result<LateNodes> chronically_late_nodes(const std::string& summary_json);

// Of the environment and the stream: NO_COLOR, not a terminal, LANG/LC_* not UTF-8.
CardStyle style_for(int fd);

}  // namespace stepscope::report
