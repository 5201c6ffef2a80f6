#include "cli/segment_folder.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/identity.h"
#include "cli/json.h"
#include "ring/reader.h"
#include "sampler/sampler.h"

namespace stepscope::cli {
namespace {

constexpr size_t kMaxRunInfo = 1 << 20;
constexpr size_t kMaxMember = 4096;
constexpr size_t kMemberBytes = 512;
constexpr std::string_view kSum = "sum=";
constexpr int kReadTries = 3;
constexpr int kPauseMs = 5;
constexpr int64_t kLockGlanceNs = 50'000'000;
constexpr int64_t kRemoveWaitNs = 1'000'000'000;
constexpr std::string_view kGone = ".gone-";  // a folder on its way out

template <typename T>
T number(const std::map<std::string, std::string>& values, const char* key) {
  const auto found = values.find(key);
  return found == values.end() ? T{} : parse_number<T>(found->second).value_or(T{});
}

std::string text(const std::map<std::string, std::string>& values, const char* key) {
  const auto found = values.find(key);
  return found == values.end() ? "" : found->second;
}

void pause() { ::poll(nullptr, 0, kPauseMs); }

uint64_t checksum(std::string_view content) {
  uint64_t sum = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : content) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return sum;
}

// flock that gives up: never waits for a process that is stopped while it holds the lock.
bool lock_within(int fd, int64_t wait_ns) {
  const int64_t deadline = monotonic_ns() + wait_ns;
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK || monotonic_ns() >= deadline) return false;
    pause();
  }
  return true;
}

// The folder of that name is still the one that was opened.
bool same_file(int fd, const std::string& path) {
  struct stat opened, named;
  return ::fstat(fd, &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

}  // namespace

std::string format_run_info(const RunInfo& info) {
  return format_key_values({{"folder", info.folder},
                            {"id", info.id},
                            {"name", info.name},
                            {"command", json_array(info.command)},
                            {"started_wall_ns", std::to_string(info.started_wall_ns)},
                            {"started_mono_ns", std::to_string(info.started_mono_ns)},
                            {"settings", json_object(info.settings)},
                            {"owner_pid", std::to_string(info.owner_pid)},
                            {"owner_start", std::to_string(info.owner_start)},
                            {"pid_namespace", std::to_string(info.pid_namespace)},
                            {"notices", json_array(info.notices)},
                            {"hub", json_object(info.hub)}});
}

std::optional<RunInfo> parse_run_info(std::string_view content) {
  const auto values = parse_key_values(content);
  if (!values.contains("folder") || !values.contains("id")) return std::nullopt;
  RunInfo info;
  info.folder = text(values, "folder");
  info.id = text(values, "id");
  info.name = text(values, "name");
  info.command = parse_json_array(text(values, "command"));
  info.settings = parse_json_object(text(values, "settings"));
  info.started_wall_ns = number<int64_t>(values, "started_wall_ns");
  info.started_mono_ns = number<int64_t>(values, "started_mono_ns");
  info.owner_pid = number<int32_t>(values, "owner_pid");
  info.owner_start = number<int64_t>(values, "owner_start");
  info.pid_namespace = number<uint64_t>(values, "pid_namespace");
  info.notices = parse_json_array(text(values, "notices"));
  info.hub = parse_json_object(text(values, "hub"));
  return info;
}

std::string format_member(const Member& member) {
  std::string content =
      format_key_values({{"pid", std::to_string(member.pid)},
                         {"start", std::to_string(member.start)},
                         {"rank", std::to_string(member.rank)},
                         {"child_pid", std::to_string(member.child_pid)},
                         {"child_start", std::to_string(member.child_start)},
                         {"code", member.code},
                         {"ended_mono_ns", std::to_string(member.ended_mono_ns)}});
  return content + std::string(kSum) + std::to_string(checksum(content)) + "\n";
}

std::optional<Member> parse_member(std::string_view content) {
  const size_t sum_at = content.rfind(kSum);
  if (sum_at == std::string_view::npos) return std::nullopt;
  const std::string_view sum = trim(content.substr(sum_at + kSum.size()));
  if (parse_number<uint64_t>(sum) != checksum(content.substr(0, sum_at))) return std::nullopt;
  const auto values = parse_key_values(content.substr(0, sum_at));
  Member member;
  member.pid = number<int32_t>(values, "pid");
  member.start = number<int64_t>(values, "start");
  member.rank = number<int32_t>(values, "rank");
  member.child_pid = number<int32_t>(values, "child_pid");
  member.child_start = number<int64_t>(values, "child_start");
  member.code = text(values, "code");
  member.ended_mono_ns = number<int64_t>(values, "ended_mono_ns");
  if (member.pid <= 0) return std::nullopt;
  return member;
}

bool is_alive(const Member& member) {
  if (!member.code.empty()) return false;
  if (sampler::process_alive(member.pid, member.start)) return true;
  return member.child_pid > 0 && sampler::process_alive(member.child_pid, member.child_start);
}

std::optional<int> exit_code(const Member& member) {
  std::string_view code = member.code;
  constexpr std::string_view kSignal = "signal ";
  const bool signal = code.starts_with(kSignal);
  if (signal) code.remove_prefix(kSignal.size());
  const auto value = parse_number<int>(code);
  if (!value || *value < 0 || *value > 255) return std::nullopt;
  return signal ? 128 + *value : *value;
}

std::optional<int> exit_code(std::vector<Member> members) {
  if (members.empty()) return std::nullopt;
  std::stable_sort(members.begin(), members.end(),
                   [](const Member& a, const Member& b) { return a.rank < b.rank; });
  bool lost = false;
  for (const Member& member : members) {
    const auto code = exit_code(member);
    if (code && *code != 0) return code;
    if (!code) lost = true;
  }
  return lost ? std::nullopt : std::optional(0);
}

std::string segment_root() { return "/dev/shm/stepscope-" + std::to_string(::geteuid()); }

Result<std::string> make_segment_root() {
  const std::string root = segment_root();
  if (::mkdir(root.c_str(), 0700) != 0 && errno != EEXIST)
    return Error{"cannot make " + root + ": " + errno_text(),
                 "recording needs a /dev/shm that can be written; try: stepscope doctor"};
  struct stat st;
  if (::lstat(root.c_str(), &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != ::geteuid() ||
      (st.st_mode & 077) != 0)
    return Error{root + " is not a private folder of this user",
                 "look at it and remove it: ls -ld " + root};
  return root;
}

std::vector<std::string> segment_folders() {
  std::vector<std::string> folders;
  const std::string root = segment_root();
  for (const std::string& name : list_folder(root)) {
    struct stat st;
    const std::string path = root + "/" + name;
    if (name.starts_with("db-")) continue;  // a live database of a run on a network disk (store)
    if (name.starts_with(kGone)) {          // whoever removed it was killed
      remove_tree(path);
      continue;
    }
    if (::lstat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode)) folders.push_back(path);
  }
  return folders;
}

std::optional<RunInfo> read_run_info(const std::string& folder) {
  const auto content = read_file(folder + "/run.txt", kMaxRunInfo);
  return content ? parse_run_info(*content) : std::nullopt;
}

Status write_run_info(const std::string& folder, const RunInfo& info) {
  return write_file(folder + "/run.txt", format_run_info(info), 0600);
}

std::vector<Member> read_members(const std::string& folder) {
  std::vector<Member> members;
  for (const std::string& name : list_folder(folder)) {
    if (!name.starts_with("member-")) continue;
    std::optional<Member> member;
    for (int tries = 0; !member && tries < kReadTries; ++tries) {  // it may be rewritten right now
      if (tries > 0) pause();
      const auto content = read_file(folder + "/" + name, kMaxMember);
      member = content ? parse_member(*content) : std::nullopt;
    }
    if (member) members.push_back(*member);
  }
  return members;
}

Status write_member(const std::string& folder, const Member& member) {
  const std::string path = folder + "/member-" + std::to_string(member.pid);
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  std::string content = format_member(member);
  content.append(kMemberBytes - std::min(kMemberBytes, content.size()),
                 '\n');  // over all of an older one
  if (!fd ||
      ::pwrite(fd.get(), content.data(), content.size(), 0) != static_cast<ssize_t>(content.size()))
    return Error{"cannot write " + path + ": " + errno_text(), "free some space in /dev/shm"};
  return ok();
}

Fd lock_folder(const std::string& folder, int64_t wait_ns) {
  Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd || !lock_within(fd.get(), wait_ns)) return {};
  if (!same_file(fd.get(), folder)) {
    errno = ENOENT;
    return {};
  }
  return fd;
}

Fd take_agent_lock(const std::string& folder) {
  const std::string path = folder + "/agent.lock";
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  // Waits a little: agent_alive() elsewhere holds it for an instant.
  if (!fd || !lock_within(fd.get(), kLockGlanceNs) || !same_file(fd.get(), path)) return {};
  const int32_t pid = ::getpid();
  const std::string line =
      std::to_string(pid) + " " + std::to_string(sampler::process_start(pid).value_or(0)) + "\n";
  if (::ftruncate(fd.get(), 0) != 0 || !write_all(fd.get(), line))
    return fd;  // full: the lock is what counts
  return fd;
}

bool agent_alive(const std::string& folder) {
  const Fd fd(::open((folder + "/agent.lock").c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return false;
  return ::flock(fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

int32_t agent_pid(const std::string& folder) {
  if (!agent_alive(folder)) return 0;
  const auto content = read_file(folder + "/agent.lock", 64);
  if (!content) return 0;
  const auto words = split(trim(*content), ' ');
  if (words.size() != 2) return 0;
  const auto pid = parse_number<int32_t>(words[0]);
  const auto start = parse_number<int64_t>(words[1]);
  return pid && start && *pid > 1 && sampler::process_alive(*pid, *start) ? *pid : 0;
}

bool any_segment_alive(const std::string& folder) {
  for (const std::string& name : list_folder(folder)) {
    if (!name.starts_with("seg-")) continue;
    const auto reader = ring::Reader::open(folder + "/" + name);
    if (!reader) continue;
    const ring::IdentityValue identity = reader->identity();
    if (identity.pid > 0 && sampler::process_alive(identity.pid, identity.pid_start_ticks))
      return true;
  }
  return false;
}

bool any_process_alive(const std::string& folder) {
  const std::vector<Member> members = read_members(folder);
  return std::any_of(members.begin(), members.end(), [](const Member& m) { return is_alive(m); }) ||
         any_segment_alive(folder);
}

bool has_ended(const std::string& folder) { return exists(folder + "/ended"); }

Status mark_ended(const std::string& folder) { return write_file(folder + "/ended", "", 0600); }

void remove_locked_segment_folder(const std::string& folder) {
  const std::string gone = folder.substr(0, folder.rfind('/') + 1) + std::string(kGone) +
                           std::to_string(::getpid()) + "-" + std::to_string(monotonic_ns());
  if (::rename(folder.c_str(), gone.c_str()) == 0) remove_tree(gone);
}

void remove_segment_folder(const std::string& folder) {
  const Fd lock = lock_folder(folder, kRemoveWaitNs);
  remove_locked_segment_folder(folder);
}

Result<Joined> join_segment_folder(const std::string& key, int64_t wait_ns,
                                   void (*finish)(const std::string& folder)) {
  const auto root = make_segment_root();
  if (!root) return root.error();
  const std::string folder = *root + "/" + key;
  const int64_t deadline = monotonic_ns() + wait_ns;
  for (; monotonic_ns() < deadline; pause()) {
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
      return Error{"cannot make " + folder + ": " + errno_text(), "try: stepscope doctor"};
    Fd lock = lock_folder(folder, wait_ns);
    if (!lock) {
      if (errno == ENOENT) continue;  // it ended while we waited for the lock
      return Error{"cannot lock " + folder + ": " + errno_text(), "try: stepscope clean"};
    }
    if (!exists(folder + "/run.txt")) return Joined{folder, true, std::move(lock)};
    if (!has_ended(folder) && any_process_alive(folder))
      return Joined{folder, false, std::move(lock)};
    lock.reset();
    if (!agent_alive(folder)) finish(folder);
  }
  return Error{folder + " belongs to a run that has ended and is not finished yet",
               "try: stepscope clean"};
}

}  // namespace stepscope::cli
