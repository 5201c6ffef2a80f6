// A run that has ended, read from its folder, and the API's answers about it: the same as its agent
// gave while it lived.
//
// The summary is read at once, the history when something asks for more: a large one takes a second.
//
// Thread safety: every function may be called by several threads; the first that needs the history
// reads it, the others wait for it. Lifetime: of whoever keeps it; a folder that was written since
// has another stamp.
#pragma once

#include <memory>
#include <mutex>
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
  // Of what was read at first, or an Error when the files were written since.
  Result<std::shared_ptr<const RunHistory>> history() const;
  serve::Reply answer(const serve::Request& request) const;

 private:
  std::string health_json() const;

  std::string stamp_, folder_;
  report::Summary summary_;
  mutable std::mutex reading_;  // of the history
  mutable std::shared_ptr<const RunHistory> history_;
};

}  // namespace stepscope::cli
