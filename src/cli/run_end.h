// What `run` shows after the child's end, and the exit code that comes of it.
#pragma once

#include <string>
#include <vector>

namespace stepscope::cli {

struct RunEndView {
  std::string folder;  // where the summary is
  bool finished = false, others_alive = false, interrupted = false;
  std::vector<std::string> said;  // by the agent
  bool quiet = false, json = false;
  std::string fail_on;  // "warning", "critical" or empty
  int exit_code = 0;    // the child's
};
int show_end(const RunEndView& view);

// The first finding of summary.json that is certain and at least this severe: "CODE is critical";
// empty: none.
std::string first_failing(const std::string& summary_json, const std::string& fail_on);

}  // namespace stepscope::cli
