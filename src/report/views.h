// The views that a page or a terminal asks for, by name: a query as words in, JSON out. Every server answers through
// this, of a live run and of one read from run.db.
//
// Thread safety: pure. Bounded: whatever is asked for, the answer has a few thousand values at most. Cost grows with
// what is kept in memory, not with the run's length.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/finding.h"
#include "model/history.h"

namespace stepscope::report {

struct ViewQuery {
  std::string view;                          // "series", "ranks", ...
  std::map<std::string, std::string> words;  // key and value
};

bool is_view(std::string_view name);
std::string view_names();                    // "series, ranks, ..."
bool needs_findings(std::string_view view);  // the others may be asked for with none

// One line of JSON. An Error names the word or value that was not understood.
Result<std::string> view(const RunHistory& run, const std::vector<Finding>& findings,
                         const ViewQuery& query);

}  // namespace stepscope::report
