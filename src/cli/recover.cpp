#include "cli/recover.h"

#include <sys/stat.h>

#include <algorithm>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "cli/identity.h"
#include "cli/recording.h"
#include "cli/segment_folder.h"
#include "store/reading.h"
#include "store/store.h"

namespace stepscope::cli {
namespace {

constexpr int64_t kForeignRestNs = 24 * 3600 * int64_t{1'000'000'000};
constexpr int64_t kUnnamedRestNs = 60 * int64_t{1'000'000'000};
constexpr int64_t kLockWaitNs = 1'000'000'000;
constexpr const char* kFinishedLate =
    "finished by a later command: the run's agent was gone before its end";

// How long nothing was made or renamed in the folder. By wall clock: a label, used only to be slow
// with strangers.
int64_t rest_ns(const std::string& folder) {
  struct stat st;
  if (::stat(folder.c_str(), &st) != 0) return 0;
  return wall_ns() - (int64_t{st.st_mtim.tv_sec} * 1'000'000'000 + st.st_mtim.tv_nsec);
}

// Segments without run.txt: their agent never came, so nobody knows which run folder they belong
// to.
Recovery remove_unnamed(const std::string& folder) {
  if (any_segment_alive(folder)) return Recovery::kLive;
  if (rest_ns(folder) < kUnnamedRestNs) return Recovery::kBusy;  // somebody may be starting in it
  remove_segment_folder(folder);
  return Recovery::kRemoved;
}

bool nobody_left(const std::string& folder) {
  const Fd lock = lock_folder(folder, kLockWaitNs);
  return lock && !any_process_alive(folder) && static_cast<bool>(mark_ended(folder));
}

// Its agent is about to end the run, or to die: worth a wait.
bool is_ending(const std::string& folder) {
  if (has_ended(folder) || agent_pid(folder) == 0) return true;
  return !read_members(folder).empty() && !any_process_alive(folder);
}

}  // namespace

Recovery finish_segment_folder(const std::string& folder, std::string* said) {
  auto info = read_run_info(folder);
  if (agent_alive(folder)) return is_ending(folder) ? Recovery::kBusy : Recovery::kLive;
  if (!info) return remove_unnamed(folder);
  if (info->pid_namespace != own_pid_namespace() && rest_ns(folder) < kForeignRestNs)
    return Recovery::kForeign;
  if (!has_ended(folder) && any_process_alive(folder)) return Recovery::kLive;
  const Fd agent = take_agent_lock(folder);
  info = read_run_info(folder);  // under the lock: another may have been here before us
  if (!agent || !info) return Recovery::kBusy;
  if (!has_ended(folder) && !nobody_left(folder)) return Recovery::kLive;

  if (!info->folder.empty() && !is_folder(info->folder)) {  // its user removed the run
    remove_segment_folder(folder);
    return Recovery::kRemoved;
  }
  const std::vector<Member> members = read_members(folder);
  int64_t ended_mono_ns = 0;
  for (const Member& member : members)
    ended_mono_ns = std::max(ended_mono_ns, member.ended_mono_ns);
  const bool all_told =
      !members.empty() && std::all_of(members.begin(), members.end(),
                                      [](const Member& m) { return m.ended_mono_ns > 0; });
  Recording recording(folder, *info);
  recording.note(kFinishedLate);
  const Recording::Ended ended{exit_code(members),
                               all_told ? ended_mono_ns - info->started_mono_ns : 0};
  const auto where = recording.finish(ended, monotonic_ns());
  if (!where) {
    if (said != nullptr)
      *said = "cannot finish the run " + info->name + ": " + where.error().message;
    return Recovery::kFailed;
  }
  remove_segment_folder(folder);
  return Recovery::kFinished;
}

void finish_dead_run(const std::string& folder) { (void)finish_segment_folder(folder); }

Status finish_run_folder(const std::string& run_folder) {
  const auto live = store::Store::is_live(run_folder);
  if (!live) return live.error();
  if (!*live) return ok();
  RunHistory history;  // without its steps, and without a reader left in the file that is finished
  {
    const auto reading = store::Reading::open(run_folder);
    if (!reading) return reading.error();
    history = reading->run();
  }
  RunInfo info{.folder = run_folder,
               .id = history.id,
               .name = history.name,
               .command = history.command,
               .settings = history.settings.effective(),
               .started_wall_ns = history.started_wall_ns,
               .notices = {}};
  Recording recording("", std::move(info));
  recording.note(kFinishedLate);
  const auto where = recording.finish({history.exit_code, history.duration_ns}, monotonic_ns());
  if (!where) return where.error();
  return ok();
}

Recovered finish_dead_runs(const std::function<bool()>& go_on) {
  Recovered out;
  for (const std::string& folder : segment_folders()) {
    if (!go_on()) break;
    std::string said;
    switch (finish_segment_folder(folder, &said)) {
      case Recovery::kFinished:
        ++out.finished;
        break;
      case Recovery::kRemoved:
        ++out.removed;
        break;
      case Recovery::kLive:
      case Recovery::kBusy:
        ++out.live;
        break;
      case Recovery::kForeign:
        ++out.foreign;
        break;
      case Recovery::kFailed:
        out.problems.push_back(said);
        break;
    }
  }
  return out;
}

}  // namespace stepscope::cli
