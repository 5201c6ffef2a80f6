#include "cli/install.h"

#include <sys/auxv.h>

#include <filesystem>

#include "base/file.h"

namespace stepscope::cli {
namespace {

bool is_inject_folder(const std::string& path) { return exists(path + "/sitecustomize.py"); }

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

}  // namespace stepscope::cli
