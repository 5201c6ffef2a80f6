// The folder in /dev/shm where the processes of one run on one node meet: supervisors, agent,
// training processes.
//
//   /dev/shm/stepscope-<uid>/<key>/       0700
//     run.txt        what the run is; written by the owner before anybody else looks
//     member-<pid>   one a supervisor: who it is, its child, and the child's end. Rewritten in
//                    place, in the page that it has from the start: a full /dev/shm has room
//     seg-*          the segments (ring::Writer)
//     boot.log       one line for every interpreter that our sitecustomize ran in
//     agent.lock     locked by the living agent, or by a command that finishes a dead run;
//                    holds "pid start"
//     ended          made by the agent when it decided to end: nobody joins any more
//     api.sock       the agent's API
//
// Joining and ending exclude each other by a lock on the folder itself (flock, held for
// microseconds): a joiner writes run.txt or its member file under it; the agent looks for living
// members and makes `ended` under it. Locks are the kernel's and die with their process. The first
// who finds no run.txt under the lock is the owner.
//
// Thread safety: reentrant. Invariant: run.txt is written by rename, a member file ends with a
// checksum: a reader sees whole ones. Every field read here may come from a killed or hostile
// writer and is checked.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace stepscope::cli {

struct RunInfo {
  std::string folder;  // the run folder, absolute; empty: nowhere to write
  std::string id, name;
  std::vector<std::string> command;
  std::map<std::string, std::string> settings;  // effective
  int64_t started_wall_ns = 0, started_mono_ns = 0;
  int32_t owner_pid = 0;
  int64_t owner_start = 0;
  uint64_t pid_namespace = 0;
  std::vector<std::string> notices;
  std::map<std::string, std::string> hub{};  // hub_options.h; empty: none. Never a token
};
std::string format_run_info(const RunInfo& info);
std::optional<RunInfo> parse_run_info(std::string_view text);

struct Member {
  int32_t pid = 0;
  int64_t start = 0;
  int32_t rank = 0;
  int32_t child_pid = 0;
  int64_t child_start = 0;
  std::string code;  // empty until the child's end, then "0" to "255", or "signal N"
  int64_t ended_mono_ns = 0;
};
std::string format_member(const Member& member);
std::optional<Member> parse_member(std::string_view text);  // empty too when half rewritten
bool is_alive(const Member& member);                 // not ended, and supervisor or child exists
std::optional<int> exit_code(const Member& member);  // 128 + N for "signal N"
// Of the run: the first code that is not 0, in order of rank; absent when a member was lost.
std::optional<int> exit_code(std::vector<Member> members);

std::string segment_root();  // /dev/shm/stepscope-<uid>, whether or not it exists
Result<std::string> make_segment_root();
std::vector<std::string> segment_folders();  // below it, absolute

std::optional<RunInfo> read_run_info(const std::string& folder);
Status write_run_info(const std::string& folder, const RunInfo& info);
std::vector<Member> read_members(const std::string& folder);
Status write_member(const std::string& folder, const Member& member);

// The lock on the folder itself. Empty when it is not there (errno ENOENT) or not to be had in time
// (EWOULDBLOCK).
Fd lock_folder(const std::string& folder, int64_t wait_ns);

// agent.lock; empty when somebody has it.
Fd take_agent_lock(const std::string& folder);
bool agent_alive(const std::string& folder);
int32_t agent_pid(const std::string& folder);  // 0 when there is none

bool any_segment_alive(const std::string& folder);
bool any_process_alive(const std::string& folder);  // members or segments
bool has_ended(const std::string& folder);
Status mark_ended(const std::string& folder);
void remove_locked_segment_folder(const std::string& folder);  // by who holds the folder's lock
void remove_segment_folder(const std::string& folder);  // renamed first: nobody joins half a folder

// Joins or founds. `lock` is held on return: write run.txt (owner) and the member file, then let it
// go.
struct Joined {
  std::string folder;
  bool owner = false;
  Fd lock;
};
// finish: called for a folder of this key whose processes have all ended and that nobody finishes.
Result<Joined> join_segment_folder(const std::string& key, int64_t wait_ns,
                                   void (*finish)(const std::string& folder));

}  // namespace stepscope::cli
