#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "base/fd.h"
#include "base/text.h"

namespace stepscope {
namespace fs = std::filesystem;

Result<std::string> read_file(const std::string& path, size_t max_bytes) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd) return Error{"cannot read " + path + ": " + errno_text(), ""};
  std::string content;
  char buffer[16 * 1024];
  while (content.size() < max_bytes) {
    const ssize_t n = ::read(fd.get(), buffer, std::min(sizeof buffer, max_bytes - content.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Error{"cannot read " + path + ": " + errno_text(), ""};
    if (n == 0) break;
    content.append(buffer, static_cast<size_t>(n));
  }
  return content;
}

bool write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    content.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

Status write_file(const std::string& path, std::string_view content, mode_t mode, bool durable) {
  const std::string temporary = path + ".tmp-" + std::to_string(::getpid());
  const auto fail = [&] {
    Error error{"cannot write " + path + ": " + errno_text(), ""};
    ::unlink(temporary.c_str());
    return error;
  };
  Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!fd) return fail();
  if (!write_all(fd.get(), content)) return fail();
  if (durable && ::fsync(fd.get()) != 0) return fail();
  if (::close(fd.release()) != 0) return fail();  // NFS reports a full disk here
  if (::rename(temporary.c_str(), path.c_str()) != 0) return fail();
  return ok();
}

bool exists(const std::string& path) {
  struct stat st;
  return ::lstat(path.c_str(), &st) == 0;
}

bool is_folder(const std::string& path) {
  struct stat st;
  return ::stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

std::vector<std::string> list_folder(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error))
    names.push_back(it->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

Status make_folders(const std::string& path, mode_t mode) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    if (!part.empty() && ::mkdir(part.c_str(), mode) != 0 && errno != EEXIST && !is_folder(part))
      return Error{"cannot make the folder " + part + ": " + errno_text(), ""};
    if (slash == std::string::npos) break;
  }
  if (!is_folder(path))
    return Error{"cannot make the folder " + path + ": a file has that name", ""};
  return ok();
}

void remove_tree(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
}

std::string absolute_path(const std::string& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  std::string normal = (error ? fs::path(path) : absolute).lexically_normal().string();
  while (normal.size() > 1 && normal.back() == '/') normal.pop_back();
  return normal;
}

}  // namespace stepscope
