#include "cli/doctor_checks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/capture.h"
#include "cli/install.h"
#include "cli/segment_folder.h"
#include "sampler/sampler.h"

namespace stepscope::cli {
namespace {

constexpr double kMb = 1024.0 * 1024.0;
constexpr double kSmallShm = 64 * kMb;    // what containers get by default
constexpr double kTinyShm = 8 * kMb;      // 5 % of less than this holds no rank's segment
constexpr double kSmallDisk = 200 * kMb;  // the most that a run leaves
constexpr int kPythonSeconds = 20;

// One line, four fields: executable, version, torch, our extension. Nothing heavy is imported.
constexpr const char* kAskPython = R"py(
import sys
import importlib.metadata as metadata
try:
    torch = metadata.version("torch")
except Exception:
    torch = ""
try:
    import importlib.util as util
    import os
    folder = sys.argv[1]
    spec = util.spec_from_file_location("stepscope", os.path.join(folder, "__init__.py"),
                                        submodule_search_locations=[folder])
    module = util.module_from_spec(spec)
    sys.modules["stepscope"] = module
    spec.loader.exec_module(module)
    import stepscope._native
    extension = "loads"
except Exception as error:
    extension = type(error).__name__ + ": " + str(error)
print("|".join([sys.executable, sys.version.split()[0], torch, extension.replace("\n", " ")]))
)py";

std::string size_text(double bytes) {
  if (bytes >= 1024 * kMb) return fmt::format("{:.1f} GB", bytes / 1024 / kMb);
  return fmt::format("{:.0f} MB", bytes / kMb);
}

bool writable(const std::string& folder) {
  const std::string probe = folder + "/.stepscope-doctor-" + std::to_string(::getpid());
  const Fd fd(::open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  const bool fine = fd && write_all(fd.get(), std::string(4096, 'x'));
  const int why = errno;
  ::unlink(probe.c_str());
  errno = why;
  return fine;
}

std::string value_of(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

Check check_space(const std::string& name, const std::string& folder, const std::string& hint) {
  if (!writable(folder)) return {name, Health::kWarn, folder + ": " + errno_text(), hint};
  struct statvfs disk{};
  if (::statvfs(folder.c_str(), &disk) != 0)
    return {name, Health::kWarn, folder + ": " + errno_text(), hint};
  const double left = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
  const std::string found = folder + " can be written, " + size_text(left) + " free";
  if (left < kSmallDisk) return {name, Health::kWarn, found, hint};
  return {name, Health::kOk, found, ""};
}

}  // namespace

Check check_shared_memory(const Surroundings& where) {
  const std::string name = "shared_memory";
  if (!writable(where.shm))
    return {name, Health::kFail, where.shm + ": " + errno_text() + "; nothing can be recorded",
            "mount it: mount -t tmpfs tmpfs " + where.shm +
                "; in a container: docker run --shm-size=1g"};
  struct statvfs disk{};
  if (::statvfs(where.shm.c_str(), &disk) != 0)
    return {name, Health::kWarn, where.shm + ": " + errno_text(), ""};
  const double unit = static_cast<double>(disk.f_frsize);
  const double size = static_cast<double>(disk.f_blocks) * unit,
               left = static_cast<double>(disk.f_bavail) * unit;
  const std::string found =
      fmt::format("{} can be written, {} of {} free", where.shm, size_text(left), size_text(size));
  const std::string hint = "make it larger; in a container: docker run --shm-size=1g";
  if (left < kTinyShm) return {name, Health::kFail, found + ": no room to record", hint};
  if (left <= kSmallShm)
    return {name, Health::kWarn, found + ": DataLoader workers may not fit either", hint};
  return {name, Health::kOk, found, ""};
}

Check check_segment_folder() {
  const auto root = make_segment_root();
  if (!root) return {"segment_folder", Health::kFail, root.error().message, root.error().hint};
  return {"segment_folder", Health::kOk, *root + " is private to this user", ""};
}

Check check_leftovers() {
  int dead = 0, live = 0;
  for (const std::string& folder : segment_folders())
    ++(agent_alive(folder) || any_process_alive(folder) ? live : dead);
  const std::string found =
      fmt::format("{} live run{}, {} left by dead processes", live, live == 1 ? "" : "s", dead);
  if (dead > 0) return {"leftover_segments", Health::kWarn, found, "stepscope clean"};
  return {"leftover_segments", Health::kOk, found, ""};
}

Check check_proc(const Surroundings& where) {
  const std::string hint =
      "mount /proc without hidepid, or in the container; CPU and memory are not measured without "
      "it";
  for (const std::string file : {"/proc/self/stat", "/proc/stat", "/proc/meminfo"})
    if (const auto content = read_file(where.root + file, 4096); !content || content->empty())
      return {"proc", Health::kWarn,
              content ? where.root + file + " is empty" : content.error().message, hint};
  return {"proc", Health::kOk, "/proc can be read", ""};
}

Check check_cores(const Surroundings& where) {
  const auto cores = sampler::Sampler(where.root).usable_cores(::getpid());
  if (cores.usable <= 0)
    return {"cores", Health::kWarn, "usable cores are not known: " + cores.reason,
            "look at /proc and /sys/fs/cgroup"};
  return {"cores", Health::kOk, fmt::format("{:g} usable ({})", cores.usable, cores.reason), ""};
}

Check check_memory(const Surroundings& where) {
  const auto limit = sampler::Sampler(where.root).memory_limit(::getpid());
  if (!limit.bytes)
    return {"memory", Health::kWarn, "the memory limit is not known: " + limit.reason,
            "look at /proc/meminfo"};
  return {"memory", Health::kOk,
          size_text(static_cast<double>(*limit.bytes)) + " (" + limit.reason + ")", ""};
}

Check check_python_part(const Surroundings& where) {
  const auto folder = find_inject_folder(where.binary, where.environment);
  if (!folder)
    return {"python_part", Health::kFail, "no stepscope Python package beside " + where.binary,
            "install it again (pip install .), or set STEPSCOPE_HOME to the folder of the package"};
  return {"python_part", Health::kOk, *folder, ""};
}

Check check_python(const Surroundings& where) {
  const auto inject = find_inject_folder(where.binary, where.environment);
  const std::string package = inject ? inject->substr(0, inject->rfind('/')) : "";
  Result<std::string> answer = Error{"there is no python in PATH", ""};
  for (const char* python : {"python", "python3"}) {
    answer = capture({python, "-c", kAskPython, package}, kPythonSeconds);
    if (answer) break;
  }
  if (!answer)
    return {"python", Health::kWarn, answer.error().message,
            "activate the environment that you train in"};
  const auto fields = split(trim(*answer), '|');
  if (fields.size() != 4)
    return {"python", Health::kWarn, "python answered " + printable(trim(*answer), 200),
            "run: python -c 'print(1)'"};
  const std::string python =
      fmt::format("Python {} ({})", printable(fields[1]), printable(fields[0]));
  if (fields[3] != "loads")
    return {"python", Health::kFail,
            python + ": the extension does not load: " + printable(fields[3], 300),
            printable(fields[0]) + " -m pip install . in stepscope's source folder"};
  if (fields[2].empty())
    return {"python", Health::kWarn, python + ": torch is not installed",
            "activate the environment that you train in"};
  return {"python", Health::kOk,
          fmt::format("{}, torch {}, the extension loads", python, printable(fields[2])), ""};
}

Check check_run_folder(const Surroundings& where) {
  return check_space("run_folder", where.cwd,
                     "start in another folder, or give one: stepscope run --run-dir DIR ...");
}

Check check_temporary(const Surroundings& where) {
  const std::string tmp = value_of(where.environment, "TMPDIR");
  return check_space("temporary_folder", tmp.empty() ? "/tmp" : tmp,
                     "free some space there, or set TMPDIR");
}

Check check_locale(const Surroundings& where) {
  std::string locale;
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"})
    if (locale.empty()) locale = value_of(where.environment, name);
  const std::string lower = lower_case(locale);
  const bool unicode =
      lower.find("utf-8") != std::string::npos || lower.find("utf8") != std::string::npos;
  const std::string found = locale.empty() ? "no locale is set" : "locale " + printable(locale, 80);
  return {"locale", Health::kOk, found + (unicode ? "" : ": cards are drawn in ASCII"), ""};
}

Check check_store() {
  return {"store", Health::kOk, std::string("SQLite ") + sqlite3_libversion() + ", linked in", ""};
}

std::vector<Check> check_all(const Surroundings& where) {
  return {check_shared_memory(where), check_segment_folder(), check_leftovers(),
          check_proc(where),          check_cores(where),     check_memory(where),
          check_python_part(where),   check_python(where),    check_run_folder(where),
          check_temporary(where),     check_locale(where),    check_store()};
}

}  // namespace stepscope::cli
