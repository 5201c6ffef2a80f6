#include "cli/identity.h"

#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

namespace stepscope::cli {
namespace {

std::string get(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

std::string hex(uint64_t value, int digits) {
  std::string text(static_cast<size_t>(digits), '0');
  for (size_t i = text.size(); i-- > 0; value >>= 4) text[i] = "0123456789abcdef"[value & 15];
  return text;
}

uint64_t fnv1a(std::string_view text, uint64_t hash = 0xcbf29ce484222325) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// Readable head, and a hash of the whole: ids that differ only in what was replaced or cut keep
// different keys.
std::string key_of(std::string_view id, uint64_t pid_namespace) {
  std::string key;
  for (const char c : id.substr(0, 40)) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '_' || c == '-' || (c == '.' && !key.empty());
    key += plain ? c : '_';
  }
  return key + "-" + hex(fnv1a(std::to_string(pid_namespace), fnv1a(id)), 16);
}

Identity shared_identity(std::string id, bool launcher, uint64_t pid_namespace) {
  std::string key = key_of(id, pid_namespace);
  return {std::move(id), std::move(key), true, launcher};
}

}  // namespace

Environment current_environment() {
  Environment out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string_view::npos)
      out.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return out;
}

Identity choose_identity(const IdentityInput& in) {
  const auto env = [&](const char* name) { return get(in.environment, name); };
  const auto either = [&](const char* a, const char* b) {
    return env(a).empty() ? env(b) : env(a);
  };
  const auto launched = [&](std::string id) {
    return shared_identity(std::move(id), true, in.pid_namespace);
  };

  if (!in.run_id_flag.empty()) return shared_identity(in.run_id_flag, false, in.pid_namespace);
  const std::string elastic = env("TORCHELASTIC_RUN_ID");
  if (!elastic.empty() && elastic != "none") return launched(elastic);
  const std::string job = either("SLURM_JOB_ID", "SLURM_JOBID");
  const std::string step = either("SLURM_STEP_ID", "SLURM_STEPID");
  if (!job.empty() && !step.empty()) return launched("slurm-" + job + "." + step);
  if (parse_number<int64_t>(env("WORLD_SIZE")).value_or(1) > 1) {
    if (!env("MASTER_ADDR").empty()) return launched(env("MASTER_ADDR") + ":" + env("MASTER_PORT"));
    if (!env("RANK").empty())
      return launched("parent-" + std::to_string(in.parent_pid) + "-" +
                      std::to_string(in.parent_start));
  }
  const std::string id = hex(in.random, 16);
  return {id, "r-" + id, false, false};
}

int rank_of(const Environment& environment) {
  for (const char* name : {"RANK", "SLURM_PROCID"})
    if (const auto rank = parse_number<int>(get(environment, name)); rank && *rank >= 0)
      return *rank;
  return 0;
}

uint64_t random_number() {
  uint64_t value = 0;
  if (::getrandom(&value, sizeof value, GRND_NONBLOCK) == static_cast<ssize_t>(sizeof value))
    return value;
  return static_cast<uint64_t>(monotonic_ns()) * 0x9e3779b97f4a7c15 ^
         static_cast<uint64_t>(::getpid());
}

uint64_t own_pid_namespace() {
  struct stat st;
  return ::stat("/proc/self/ns/pid", &st) == 0 ? st.st_ino : 0;
}

}  // namespace stepscope::cli
