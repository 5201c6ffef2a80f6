// What ends a run without slowing it down first: the kernel's own killing for lack of memory, a full
// /dev/shm, a process that may open no more files.
#include <dirent.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <memory>

#include "sampler/proc.h"
#include "sampler/sampler.h"

namespace stepscope::sampler {
namespace {

constexpr int kFilesEvery = 8;  // calls: a pass over each process's folder of open files

// Version 1 counts in the victim's own group alone, version 2 in its ancestors too.
std::optional<int64_t> killed_for_memory(const std::string& root, const Cgroup& memory) {
  if (!memory.levels.empty()) {
    const std::string& own = memory.levels.front().folder;
    const auto text =
        read_file(own + (memory.version == 2 ? "/memory.events" : "/memory.oom_control"));
    if (const auto kills = text ? value_of(*text, "oom_kill") : std::nullopt) return kills;
  }
  const auto text = read_file(root + "/proc/vmstat");
  return text ? value_of(*text, "oom_kill") : std::nullopt;
}

std::optional<int64_t> open_files(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> files(opendir(folder.c_str()), closedir);
  if (!files) return std::nullopt;
  int64_t count = 0;
  while (const dirent* entry = readdir(files.get()))
    if (entry->d_name[0] != '.') ++count;
  return count;
}

// "Max open files            1024                 1048576              files": the first.
std::optional<int64_t> most_open_files(const std::string& root, int32_t pid) {
  const auto text = read_file(pid_file(root, pid, "limits"), kStatBytes);
  return text ? value_of(*text, "Max open files") : std::nullopt;
}

}  // namespace

void Sampler::count_memory_kills(NodeHistory& node) {
  if (group_pid_ == 0) {  // whose group it is, is not known yet
    node.memory_kills.not_measured = kNoProcess;
    return;
  }
  const auto kills = killed_for_memory(root_, killing_group_);
  if (!kills) {
    if (node.memory_kills.count == 0)
      node.memory_kills.not_measured = "neither the cgroup nor /proc/vmstat counts them";
    return;
  }
  if (!memory_kills_) memory_kills_ = *kills;  // those before the run are not its own
  node.memory_kills.add(static_cast<double>(std::max<int64_t>(0, *kills - *memory_kills_)));
}

void Sampler::read_shared_memory(NodeHistory& node) const {
  struct statvfs shm;
  if (statvfs((root_ + "/dev/shm").c_str(), &shm) != 0 || shm.f_blocks == 0) return;
  const auto bytes = [&](auto blocks) {
    return static_cast<double>(blocks) * static_cast<double>(shm.f_frsize);
  };
  node.shm_size_bytes.add(bytes(shm.f_blocks));
  node.shm_used_bytes.add(bytes(shm.f_blocks - shm.f_bavail));
}

void Sampler::read_open_files(const std::vector<Member>& members, NodeHistory& node) const {
  if (calls_ % kFilesEvery != 2) return;  // the second: a short run has a reading too
  double fullest = -1;
  for (const Member& member : members) {
    const auto open = open_files(pid_file(root_, member.pid, "fd"));
    const auto most = open ? most_open_files(root_, member.pid) : std::nullopt;
    if (most && *most > 0)
      fullest = std::max(fullest, static_cast<double>(*open) / static_cast<double>(*most));
  }
  if (fullest >= 0) node.open_files_share.add(fullest);
}

}  // namespace stepscope::sampler
