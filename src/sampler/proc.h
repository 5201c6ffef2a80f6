// Reads and parses the text files of /proc and the cgroup tree. Every failure is a value with a
// reason ("/proc/stat: Permission denied"); nothing that a file says is trusted to be a number.
//
// Thread safety: pure functions, reentrant.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"

namespace stepscope::sampler {

// At most max_bytes of a file, in one open. The error names the path and errno's text.
Result<std::string> read_file(const std::string& path, size_t max_bytes = 1 << 20);

std::string pid_file(const std::string& root, int32_t pid,
                     const char* name);  // <root>/proc/<pid>/name

struct ProcStat {
  char state = '?';
  bool exiting = false;  // PF_EXITING: it runs no instruction of its program any more
  int32_t ppid = 0;
  int64_t start_ticks = 0;
  // user + system of the process and of the children it has waited for: summed over a process tree
  // this never falls when a worker ends, because the worker's time moves into its parent's.
  int64_t cpu_ticks = 0;
  int64_t minor_faults = 0, major_faults = 0;  // of the process itself
  // Ticks that its first thread waited for storage. The kernel counts them only when it was asked
  // to (sysctl kernel.task_delayacct=1); it says 0 else.
  int64_t disk_wait_ticks = 0;
};
std::optional<ProcStat> parse_stat(
    std::string_view text);  // of /proc/<pid>/stat; any name, brackets included

inline constexpr size_t kStatBytes = 4096;  // more than any of a process's small files holds
std::optional<ProcStat> read_stat(const std::string& root, int32_t pid);
inline bool dead(const ProcStat& stat) {
  return stat.state == 'Z' || stat.state == 'X' || stat.exiting;
}
bool lives(const std::string& root, int32_t pid);

inline constexpr const char* kNoProcess = "no process of the run is visible in /proc";

// "0-3,8": CPU numbers below 8192; absent when the text is not such a list.
std::optional<std::set<int>> parse_cpu_list(std::string_view text);

// The number after `key` at the beginning of a line: "MemTotal:  123 kB", "nr_throttled 5".
std::optional<int64_t> value_of(std::string_view text, std::string_view key);
// The rest of that line, without blanks at both ends.
std::optional<std::string> line_of(std::string_view text, std::string_view key);

std::optional<int64_t> parse_int(std::string_view text);  // all of it, blanks around allowed

}  // namespace stepscope::sampler
