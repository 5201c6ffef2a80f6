#include "probe/scan.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/text.h"

namespace stepscope::probe {
namespace {

constexpr int64_t kLookEvery = 64;  // entries between two looks at the clock
constexpr uint64_t kSeed = 0x5354'4550'5343'4f50;

uint64_t next_random(uint64_t& state) {  // xorshift64*, Vigna 2016
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return state * 0x2545f4914f6cdd1dULL;
}

class Walk {
 public:
  Walk(Scan& out, int64_t deadline_ns) : out_(out), deadline_ns_(deadline_ns) {}

  void start(const std::string& path, const struct stat& st) {
    if (S_ISREG(st.st_mode))
      add(path, st.st_size);
    else
      enter(path, st);
    while (!todo_.empty() && out_.complete) {
      const std::string folder = std::move(todo_.back());
      todo_.pop_back();
      list(folder);
    }
    std::sort(out_.sample.begin(), out_.sample.end(),
              [](const File& a, const File& b) { return a.place < b.place; });
  }

 private:
  void enter(const std::string& path, const struct stat& st) {
    if (seen_.emplace(st.st_dev, st.st_ino).second) todo_.push_back(path);
  }

  void list(const std::string& folder) {
    const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(folder.c_str()), &::closedir);
    if (!dir) {
      ++out_.unreadable;
      return;
    }
    ++out_.folders;
    while (const dirent* entry = ::readdir(dir.get())) {
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (++entries_ >= kMostEntries ||
          (entries_ % kLookEvery == 0 && monotonic_ns() > deadline_ns_)) {
        out_.complete = false;
        return;
      }
      look(::dirfd(dir.get()), folder, entry->d_name);
    }
  }

  void look(int folder_fd, const std::string& folder, const char* name) {
    struct stat st;
    if (::fstatat(folder_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
      ++out_.unreadable;
      return;
    }
    const std::string path = folder + "/" + name;
    if (S_ISLNK(st.st_mode)) {
      ++out_.links;
      if (::fstatat(folder_fd, name, &st, 0) != 0) {  // dangling, or a loop of links
        ++out_.unreadable;
        return;
      }
    }
    if (S_ISDIR(st.st_mode))
      enter(path, st);
    else if (S_ISREG(st.st_mode))
      add(path, st.st_size);
    else
      ++out_.special;
  }

  void add(const std::string& path, int64_t bytes) {
    const int64_t place = out_.files++;
    out_.bytes += bytes;
    out_.empty_files += bytes == 0;
    if (out_.neighbours.size() < kSample) out_.neighbours.push_back({path, bytes, place});
    if (out_.sample.size() < kSample) {
      out_.sample.push_back({path, bytes, place});
      return;
    }
    const auto at = next_random(random_) % static_cast<uint64_t>(out_.files);
    if (at < kSample) out_.sample[at] = {path, bytes, place};
  }

  Scan& out_;
  int64_t deadline_ns_, entries_ = 0;
  uint64_t random_ = kSeed;
  std::vector<std::string> todo_;
  std::set<std::pair<dev_t, ino_t>> seen_;
};

}  // namespace

Result<Scan> scan(const std::string& path, int64_t deadline_ns) {
  struct stat st;
  if (::stat(path.c_str(), &st) != 0)
    return Error{"cannot look at " + path + ": " + errno_text(), "check the spelling"};
  if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
    return Error{path + " is neither a folder nor a file", "give the folder that holds the data"};
  Scan out;
  Walk(out, deadline_ns).start(path, st);
  if (out.folders == 0 && out.files == 0)
    return Error{"cannot read the folder " + path, "check its permissions: ls -ld " + path};
  return out;
}

}  // namespace stepscope::probe
