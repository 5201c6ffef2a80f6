#include "cli/machine_limits.h"

#include <sys/statvfs.h>

#include "base/file.h"
#include "base/text.h"
#include "sampler/sampler.h"

namespace stepscope::cli {
namespace {

// The soft one, of a line "Max open files  1024  1048576  files".
std::optional<int64_t> open_files(int32_t pid, const std::string& root) {
  constexpr std::string_view kName = "Max open files";
  const auto text = read_file(root + "/proc/" + std::to_string(pid) + "/limits");
  if (!text) return std::nullopt;
  for (const std::string_view line : split(*text, '\n')) {
    if (!line.starts_with(kName)) continue;
    const std::string_view rest = trim(line.substr(kName.size()));
    return parse_number<int64_t>(rest.substr(0, rest.find(' ')));  // "unlimited" is no number
  }
  return std::nullopt;
}

}  // namespace

tuner::Machine machine_limits(int32_t pid, const std::string& root) {
  const sampler::Sampler sampler(root);
  const sampler::Sampler::Cores cores = sampler.usable_cores(pid);
  const sampler::Sampler::MemoryLimit memory = sampler.memory_limit(pid);
  tuner::Machine out{.cores = cores.usable,
                     .cores_reason = cores.reason,
                     .memory_limit_bytes = memory.bytes,
                     .memory_reason = memory.reason,
                     .open_files = open_files(pid, root)};
  struct statvfs shm;
  if (::statvfs((root + "/dev/shm").c_str(), &shm) == 0)
    out.shm_free_bytes = static_cast<int64_t>(shm.f_bavail) * static_cast<int64_t>(shm.f_frsize);
  return out;
}

}  // namespace stepscope::cli
