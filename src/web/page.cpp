#include "web/page.h"

#include <array>
#include <filesystem>

#include "base/file.h"

namespace stepscope::web {
namespace {

constexpr std::array<std::pair<std::string_view, const char*>, 10> kTypes = {{
    {".html", "text/html; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".json", "application/json"},
    {".svg", "image/svg+xml"},
    {".png", "image/png"},
    {".ico", "image/x-icon"},
    {".woff2", "font/woff2"},
    {".txt", "text/plain; charset=utf-8"},
    {".map", "application/json"},
}};

constexpr std::string_view kNoPage =
    "The page is not part of this installation of stepscope.\n"
    "hint: ./dev build makes it; the same data: curl -H 'Authorization: Bearer TOKEN' "
    "http://HOST/v1/runs\n";

std::string type_of(std::string_view path) {
  for (const auto& [ending, type] : kTypes)
    if (path.ends_with(ending)) return type;
  return "application/octet-stream";
}

}  // namespace

Page Page::load(const std::string& folder) {
  namespace fs = std::filesystem;
  Page page;
  size_t bytes = 0;
  std::error_code error;
  if (folder.empty()) return page;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code failed;
    if (!entry->is_regular_file(failed) || entry->is_symlink(failed)) continue;
    auto content = read_file(entry->path().string(), kMaxBytes);
    if (!content) continue;
    bytes += content->size();
    if (bytes > kMaxBytes) break;
    const std::string path = "/" + fs::relative(entry->path(), folder, failed).generic_string();
    page.files_[path] = {type_of(path), std::move(*content)};
  }
  return page;
}

bool Page::has(std::string_view path) const {
  return path == "/" || files_.find(path) != files_.end();
}

serve::Reply Page::answer(std::string_view path) const {
  const auto found = files_.find(path == "/" ? "/index.html" : path);
  if (found != files_.end()) return {200, found->second.content_type, found->second.bytes};
  if (path == "/") return {200, "text/plain; charset=utf-8", std::string(kNoPage)};
  return {404, "text/plain; charset=utf-8", "there is no such file\n"};
}

}  // namespace stepscope::web
