#include "cli/server_process.h"

#include <sys/resource.h>

#include <initializer_list>

namespace stepscope::cli {

sigset_t block_stopping_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) sigaddset(&set, number);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  return set;
}

bool is_told_to_stop(const sigset_t& stopping) {
  const timespec at_once{};
  return ::sigtimedwait(&stopping, nullptr, &at_once) > 0;
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace stepscope::cli
