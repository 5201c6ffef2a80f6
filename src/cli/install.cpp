#include "cli/install.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "base/text.h"

namespace stepscope::cli {
namespace {

bool is_inject_folder(const std::string& path) { return exists(path + "/sitecustomize.py"); }

std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

// Empty when there is none.
std::string program_in(std::string_view folders, const std::string& name) {
  for (const std::string_view folder : split(folders, ':')) {
    const std::string path = std::string(folder) + "/" + name;
    if (!folder.empty() && ::access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

}  // namespace

std::string own_path() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) return path.string();
  const auto* started_as =
      reinterpret_cast<const char*>(::getauxval(AT_EXECFN));  // /proc is hidden
  return started_as == nullptr ? "" : absolute_path(started_as);
}

std::optional<std::string> find_inject_folder(const std::string& binary,
                                              const Environment& environment) {
  if (const auto home = environment.find("STEPSCOPE_HOME");
      home != environment.end() && !home->second.empty()) {
    const std::string folder = absolute_path(home->second) + "/_inject";
    if (is_inject_folder(folder)) return folder;
  }
  const size_t slash = binary.rfind('/');
  if (slash == std::string::npos) return std::nullopt;
  const std::string prefix = absolute_path(binary.substr(0, slash) + "/..");
  for (const std::string lib : {"/lib", "/lib64", "/local/lib"})
    for (const std::string& python : list_folder(prefix + lib)) {
      if (!python.starts_with("python3")) continue;
      for (const std::string packages : {"/site-packages", "/dist-packages"}) {
        const std::string folder = prefix + lib + "/" + python + packages + "/stepscope/_inject";
        if (is_inject_folder(folder)) return folder;
      }
    }
  if (is_inject_folder(prefix + "/stepscope/_inject"))
    return prefix + "/stepscope/_inject";  // pip --target
  return std::nullopt;
}

std::string find_page_folder(const std::string& binary, const Environment& environment) {
  const auto inject = find_inject_folder(binary, environment);
  if (!inject) return "";
  const std::string folder = inject->substr(0, inject->rfind('/')) + "/page";
  return exists(folder + "/index.html") ? folder : "";
}

std::optional<OwnPython> find_python(const std::string& binary, const Environment& environment) {
  const auto inject = find_inject_folder(binary, environment);
  if (!inject) return std::nullopt;
  const std::string packages = parent_of(parent_of(*inject));
  std::string name = "python3";  // of PREFIX/lib/python3.11/site-packages: python3.11
  const std::string version = parent_of(packages).substr(parent_of(packages).rfind('/') + 1);
  if (version.starts_with("python3.")) name = version;
  const auto path = environment.find("PATH");
  const std::string others = path == environment.end() ? "/usr/bin" : path->second;
  const std::string folders = parent_of(binary) + ":" + others;
  for (const std::string& one : {name, std::string("python3")})
    if (const std::string found = program_in(folders, one); !found.empty())
      return OwnPython{found, packages};
  return std::nullopt;
}

}  // namespace stepscope::cli
