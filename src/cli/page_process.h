// The page of a run that goes on, in a process of its own beside the agent: `stepscope serve --of
// SEGMENTS`. Browsers, TLS and slow readers are its business alone; from the agent it asks what any
// other reader asks, so that the training never meets them.
//
//   prepare(): listens, has a token   launch(): started; again when it died   ends with the run
//
// Thread safety: none; the supervisor's. Invariant: nothing of it reaches the child: the socket is
// closed by exec.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "cli/serve_options.h"

namespace stepscope::cli {

class PageProcess {
 public:
  static constexpr int kRestarts = 3;
  static constexpr int64_t kEndNs = 1'000'000'000;

  // listens: else it only sends metrics.
  static Result<PageProcess> prepare(const ServePlan& plan, const ServeFlags& flags, bool listens);

  const std::string& url() const { return url_; }  // empty when it does not listen
  void launch(const std::string& segment_folder);
  int fd() const { return output_.get(); }  // readable when it says something
  std::vector<std::string> read();          // whole lines

  // True when it was this one that ended.
  bool reaped(pid_t pid, int status, int64_t now_ns);
  std::optional<int64_t> next_start_ns() const;  // when it is to be launched again
  // After the run's end: waits a little for it to say goodbye to its viewers.
  void wait_for_end();

 private:
  PageProcess() = default;

  Fd listening_, output_;
  std::string token_, url_, line_;
  std::vector<std::string> arguments_;
  pid_t pid_ = -1;
  int starts_ = 0;
  int64_t next_start_ns_ = -1;
};

}  // namespace stepscope::cli
