// A run that has ended, read from its folder, and the API's answers about it: the same as its agent
// gave while it lived.
//
// Thread safety: constant once read. Lifetime: of whoever keeps it; a folder that was written since
// has another stamp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/finding.h"
#include "model/history.h"
#include "report/report.h"
#include "serve/api.h"

namespace stepscope::cli {

class EndedRun {
 public:
  static Result<std::shared_ptr<const EndedRun>> read(const std::string& folder);
  // Changes when one of the run's files does.
  static std::string stamp_of(const std::string& folder);

  const std::string& stamp() const { return stamp_; }
  const RunHistory& run() const { return run_; }
  serve::Reply answer(const serve::Request& request) const;

 private:
  std::string health_json() const;

  std::string stamp_, folder_;
  RunHistory run_;
  std::vector<Finding> findings_;
  report::Summary summary_;
};

}  // namespace stepscope::cli
