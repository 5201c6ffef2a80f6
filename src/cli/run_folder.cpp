#include "cli/run_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>

#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/run_list.h"

namespace stepscope::cli {
namespace {

constexpr int kMostSuffixes = 10'000;
constexpr size_t kProbeBytes = 64 * 1024;

std::string file_name(std::string_view path) {
  const size_t slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 64)) {
    const bool keep = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                      c == '_' || c == '-' || c == '.';
    out += keep ? c : '_';
  }
  if (out.empty() || out[0] == '.' || out[0] == '-') out.insert(0, "run");
  return out;
}

// `-m` modules that start something else.
bool is_launcher_module(std::string_view module) {
  constexpr std::array kLaunchers = {
      "torch.distributed.run",      "torch.distributed.launch",
      "accelerate.commands.launch", "accelerate.commands.accelerate_cli",
      "deepspeed.launcher.launch",  "deepspeed.launcher.runner"};
  return std::find(kLaunchers.begin(), kLaunchers.end(), module) != kLaunchers.end();
}

// A folder is only as good as the bytes it takes: a full disk still makes folders.
bool takes_bytes(const std::string& folder) {
  const std::string probe = folder + "/.probe-" + std::to_string(::getpid());
  Fd fd(::open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) return false;
  bool fine = write_all(fd.get(), std::string(kProbeBytes, 'x'));
  if (::close(fd.release()) != 0) fine = false;
  const int why = errno;
  ::unlink(probe.c_str());
  errno = why;
  return fine;
}

// Makes parent/name or parent/name-2 ...; false with errno when the parent cannot hold it.
bool make_named(const std::string& parent, const std::string& name, RunFolder& out) {
  if (!make_folders(parent)) return false;
  for (int i = 1; i < kMostSuffixes; ++i) {
    const std::string candidate = i == 1 ? name : name + "-" + std::to_string(i);
    const std::string path = parent + "/" + candidate;
    if (::mkdir(path.c_str(), 0777) == 0) {
      if (!takes_bytes(path)) {
        const int why = errno;
        ::rmdir(path.c_str());
        errno = why;
        return false;
      }
      out.path = path;
      out.name = candidate;
      return true;
    }
    if (errno != EEXIST) return false;
  }
  return false;
}

// A private folder in a place that others can write to.
bool make_private(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return false;
  struct stat st;
  if (::lstat(folder.c_str(), &st) != 0) return false;
  if (S_ISDIR(st.st_mode) && st.st_uid == ::geteuid() && (st.st_mode & 022) == 0) return true;
  errno = EPERM;
  return false;
}

RunFolder fall_back(const FolderRequest& request, const std::string& wanted,
                    const std::string& why) {
  RunFolder out{.path = "", .name = request.name, .notices = {}};
  const std::string reason = "cannot write in " + wanted + " (" + why + ")";
  const auto folder = make_fallback_folder(request.name, request.environment);
  if (folder) {
    out.path = *folder;
    out.name = file_name(*folder);
    out.notices.push_back(reason + ": this run's files are in " + out.path);
  } else {
    out.notices.push_back(reason + "; " + folder.error().message + ": this run leaves no files");
  }
  return out;
}

Result<RunFolder> make_explicit(const FolderRequest& request) {
  const std::string path = absolute_path(request.run_dir);
  RunFolder out{.path = path, .name = request.name, .notices = {}};
  if (exists(path) && !is_folder(path))
    return Error{"--run-dir " + request.run_dir + " is a file, not a folder",
                 "give another folder"};
  if (holds_run(path)) {
    if (request.launcher_id && run_id_in(path) == request.run_id) {
      // The launcher's restart of the same job, or its other node on a shared disk: a part of its
      // own.
      const size_t slash = path.rfind('/');
      if (make_named(path.substr(0, std::max<size_t>(slash, 1)), path.substr(slash + 1), out)) {
        out.name = request.name;
        out.notices.push_back(
            path + " holds an earlier part of this job: this part's files are in " + out.path);
        return out;
      }
      return fall_back(request, path, errno_text());
    }
    if (!request.overwrite)
      return Error{"--run-dir " + request.run_dir + " already holds a run",
                   "add --overwrite to replace it, or give another folder"};
    if (is_live(path))
      return Error{"--run-dir " + request.run_dir + " holds a run that is still going on",
                   "give another folder"};
    remove_run_files(path);
  }
  if (const Status made = make_folders(path); !made || !takes_bytes(path))
    return fall_back(request, path, errno_text());
  return out;
}

}  // namespace

std::string script_stem(const std::vector<std::string>& command) {
  if (command.empty()) return "run";
  bool python = false;  // the word before was an interpreter, so that -m and -c are its own
  for (size_t i = 0; i < command.size(); ++i) {
    const std::string& word = command[i];
    const std::string base = file_name(word);
    if (base.starts_with("python") || base == "torchrun" || base == "accelerate" ||
        base == "deepspeed")
      python = true;
    if (python && word == "-c") return "python";
    if (python && word == "-m" && i + 1 < command.size()) {
      const std::string& module = command[i + 1];
      if (!is_launcher_module(module)) return plain(module.substr(module.rfind('.') + 1));
      ++i;
      continue;
    }
    for (const std::string_view ending : {".py", ".sh"})
      if (base.size() > ending.size() && base.ends_with(ending))
        return plain(std::string_view(base).substr(0, base.size() - ending.size()));
  }
  return plain(file_name(command[0]));
}

std::string time_label(int64_t wall_time_ns) {
  const time_t seconds = static_cast<time_t>(wall_time_ns / 1'000'000'000);
  struct tm parts{};
  ::localtime_r(&seconds, &parts);
  char text[32];
  const size_t length = ::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &parts);
  return {text, length};
}

Status check_name(const std::string& name) {
  const Error bad{"--name " + shell_quote(printable(name, 80)) + " cannot be the name of a folder",
                  "use up to 200 letters, digits, spaces and marks, without \"/\""};
  if (name.empty() || name.size() > 200 || name == "." || name == "..") return bad;
  for (const char c : name)
    if (c == '/' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return bad;
  return ok();
}

Result<RunFolder> make_run_folder(const FolderRequest& request) {
  if (!request.run_dir.empty()) return make_explicit(request);
  RunFolder out;
  const std::string parent = request.cwd + "/stepscope-runs";
  if (make_named(parent, request.name, out)) return out;
  return fall_back(request, parent, errno_text());
}

bool holds_run(const std::string& folder) {
  return exists(folder + "/run.db") || exists(folder + "/summary.json");
}

void remove_run_files(const std::string& folder) {
  for (const std::string& name : list_folder(folder))
    if (name.starts_with("run.db") || name.starts_with("summary.json") ||
        name.starts_with("summary.txt"))
      ::unlink((folder + "/" + name).c_str());
  ::rmdir(folder.c_str());
}

Result<std::string> make_fallback_folder(const std::string& name, const Environment& environment) {
  RunFolder out;
  for (const std::string& place : fallback_places(environment))
    if (make_private(place) && make_named(place, name, out)) return out.path;
  return Error{"nothing can be written in TMPDIR, /tmp or /dev/shm either",
               "free some space: df -h /tmp"};
}

std::vector<std::string> fallback_places(const Environment& environment) {
  const std::string own = "stepscope-runs-" + std::to_string(::geteuid());
  std::vector<std::string> places;
  if (const auto tmp = environment.find("TMPDIR"); tmp != environment.end() && !tmp->second.empty())
    places.push_back(absolute_path(tmp->second) + "/" + own);
  for (const std::string base : {"/tmp/", "/dev/shm/"})
    if (places.empty() || places[0] != base + own) places.push_back(base + own);
  return places;
}

}  // namespace stepscope::cli
