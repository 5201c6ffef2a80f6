#include "cli/stacks.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "engine/stuck.h"

extern char** environ;

namespace stepscope::cli {
namespace {

constexpr size_t kMaxDump = 256 << 10, kMostFrames = 6, kMaxFrame = 160;

// Signals as a command expects them: the agent blocks most.
pid_t spawn(const std::string& pid, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, output, 1);
  ::posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  ::posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::array<std::string, 5> words = {"py-spy", "dump", "--nonblocking", "--pid", pid};
  std::array<char*, 6> arguments{};
  for (size_t i = 0; i < words.size(); ++i) arguments[i] = words[i].data();
  pid_t process = -1;
  if (::posix_spawnp(&process, "py-spy", &actions, &attributes, arguments.data(), environ) != 0)
    process = -1;
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  return process;
}

}  // namespace

std::string frames_of(const std::string& dump) {
  std::string frames;
  size_t count = 0;
  bool inside = false, main_thread = false;
  for (const std::string_view line : split(dump, '\n')) {
    const bool is_thread = line.starts_with("Thread ");
    if (is_thread) {
      if (main_thread) break;
      main_thread = line.find("MainThread") != std::string_view::npos;
      inside = main_thread || frames.empty();  // without such a name the first will do
      if (main_thread) {
        frames.clear();
        count = 0;
      }
      continue;
    }
    if (!inside || !line.starts_with("    ") || count >= kMostFrames) continue;
    ++count;
    frames += (frames.empty() ? "" : " < ") + printable(line.substr(4), kMaxFrame);
  }
  return frames;
}

Stacks::~Stacks() { end(); }

std::optional<std::string> Stacks::tick(const RunHistory& run, int64_t now_ns) {
  const std::vector<int32_t> late = engine::late_when_stuck(run);
  if (late.empty()) {
    asked_.clear();
    waiting_.clear();
  }
  for (const RankHistory& rank : run.ranks) {
    if (late.empty() || !rank.doing || !rank.doing->alive || rank.pid <= 0) continue;
    if (std::find(late.begin(), late.end(), rank.rank) == late.end()) continue;
    if (asked_.insert(rank.rank).second)
      waiting_.push_back({rank.rank, rank.pid, rank.doing->step});
  }
  if (process_ < 0 && !waiting_.empty() && begun_ < kMost) {
    begin(waiting_.front(), now_ns);
    waiting_.pop_front();
  }
  if (process_ < 0) return std::nullopt;
  if (now_ns - begun_ns_ > kTimeNs) {
    end();
    return std::nullopt;
  }
  return read();
}

void Stacks::begin(const Wanted& wanted, int64_t now_ns) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  output_ = Fd(ends[0]);
  const Fd write_end(ends[1]);
  ::fcntl(output_.get(), F_SETFL, O_NONBLOCK);
  process_ = spawn(std::to_string(wanted.pid), write_end.get());
  now_ = wanted;
  text_.clear();
  begun_ns_ = now_ns;
  ++begun_;
}

std::optional<std::string> Stacks::read() {
  std::array<char, 4096> chunk;
  ssize_t n = 0;
  while ((n = ::read(output_.get(), chunk.data(), chunk.size())) > 0)
    if (text_.size() < kMaxDump) text_.append(chunk.data(), static_cast<size_t>(n));
  if (n < 0) return std::nullopt;  // not yet
  process_ = -1;  // it closed its output: it ends by itself, and is reaped with all
  output_.reset();
  const std::string frames = frames_of(text_);
  if (frames.empty()) return std::nullopt;
  return "rank " + std::to_string(now_.rank) + ", stuck at step " + std::to_string(now_.step) +
         ", stands in " + frames;
}

void Stacks::end() {
  if (process_ > 0) ::kill(process_, SIGKILL);
  process_ = -1;
  output_.reset();
}

}  // namespace stepscope::cli
