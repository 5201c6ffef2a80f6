#include "cli/process_tree.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <map>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "sampler/proc.h"

namespace stepscope::cli {
namespace {

constexpr timespec kPause{0, 2'000'000};
constexpr int64_t kGiveUpNs =
    10'000'000'000;  // a process in uninterruptible sleep: not ours to wait for

void reap() {
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

bool cleans_up(pid_t pid) {
  const auto line = read_file(sampler::pid_file("", pid, "cmdline"), 1 << 16);
  return line && (line->find("resource_tracker") != std::string::npos ||
                  line->find("torch_shm_manager") != std::string::npos);
}

}  // namespace

void become_reaper() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

std::vector<pid_t> descendants(pid_t pid, const std::string& root) {
  std::multimap<pid_t, pid_t> children;
  for (const std::string& name : list_folder(root + "/proc")) {
    const auto number = parse_number<pid_t>(name);
    if (!number) continue;
    const auto stat = sampler::read_stat(root, *number);
    if (stat && stat->state != 'Z' && stat->state != 'X') children.emplace(stat->ppid, *number);
  }
  std::vector<pid_t> found, todo{pid};
  while (!todo.empty()) {
    const auto [begin, end] = children.equal_range(todo.back());
    todo.pop_back();
    for (auto at = begin; at != end; ++at) {
      found.push_back(at->second);
      todo.push_back(at->second);
    }
    children.erase(begin, end);
  }
  return found;
}

void end_descendants() {
  const int64_t begin_ns = monotonic_ns();
  while (true) {
    reap();
    const std::vector<pid_t> left = descendants(::getpid());
    const int64_t waited_ns = monotonic_ns() - begin_ns;
    if (left.empty() || waited_ns > kGiveUpNs) return;
    for (const pid_t pid : left)
      if (waited_ns > kGraceNs || !cleans_up(pid)) ::kill(pid, SIGKILL);
    ::nanosleep(&kPause, nullptr);
  }
}

}  // namespace stepscope::cli
