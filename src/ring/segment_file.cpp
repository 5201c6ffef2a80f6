#include "ring/segment_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"

namespace stepscope::ring {
namespace {

constexpr const char* kRoomHint =
    "give the machine or container more shared memory (docker run --shm-size=1g), or raise the "
    "share: "
    "--set shm_share=0.2";

std::string kilobytes(double bytes) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.0f KB", bytes / 1024);
  return text;
}

bool is_segment(const std::string& name) {
  return name.starts_with("seg-") || name.starts_with("tmp-seg-");
}

// Bytes that the segments directly in a folder take.
uint64_t segment_bytes_in(const std::string& folder) {
  uint64_t sum = 0;
  for (const std::string& name : list_folder(folder)) {
    struct stat st;
    if (is_segment(name) && lstat((folder + "/" + name).c_str(), &st) == 0)
      sum += static_cast<uint64_t>(st.st_blocks) * 512;
  }
  return sum;
}

// Those of all runs of this user: folder is stepscope-<uid>/<run>.
uint64_t segment_bytes_of_user(const std::string& folder) {
  const std::string path = absolute_path(folder);
  const size_t cut = path.find_last_of('/');
  const std::string parent = path.substr(0, cut);
  if (!parent.substr(parent.find_last_of('/') + 1).starts_with("stepscope-"))
    return segment_bytes_in(path);
  uint64_t sum = 0;
  for (const std::string& run : list_folder(parent)) sum += segment_bytes_in(parent + "/" + run);
  return sum;
}

}  // namespace

SegmentFile::~SegmentFile() {
  if (file_) unlinkat(folder_.get(), temporary_name().c_str(), 0);
}

Result<SegmentFile> SegmentFile::allocate(const std::string& folder, const std::string& name,
                                          size_t bytes, double shm_share) {
  SegmentFile file(folder, name, bytes);
  file.folder_ = Fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!file.folder_)
    return Error{"cannot use the segment folder " + folder + ": " + errno_text(),
                 "check that /dev/shm is writable"};
  struct statfs fs;
  if (fstatfs(file.folder_.get(), &fs) != 0 || fs.f_type != TMPFS_MAGIC)
    return Error{
        "the segment folder " + folder + " is not on a tmpfs; recordings never go to a disk",
        "mount a tmpfs on /dev/shm"};
  if (auto room = file.check_room(bytes, shm_share); !room) return room.error();
  const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  file.file_ = Fd(openat(file.folder_.get(), file.temporary_name().c_str(), flags, 0600));
  if (!file.file_)
    return Error{"cannot create a segment in " + folder + ": " + errno_text(),
                 "check the space and the inodes of /dev/shm: df -h /dev/shm; df -i /dev/shm"};
  if (auto reserved = file.reserve(shm_share); !reserved) return reserved.error();
  return file;
}

Status SegmentFile::reserve(double shm_share) {
  // Beyond this limit ftruncate does not fail but kills, with SIGXFSZ.
  rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes_)
    return Error{"a segment of " + kilobytes(static_cast<double>(bytes_)) +
                     " is larger than this process may write",
                 "raise the limit: ulimit -f unlimited"};
  int error = ftruncate(file_.get(), static_cast<off_t>(bytes_)) == 0 ? 0 : errno;
  for (int attempt = 0; error == 0 && attempt < 100; ++attempt) {
    error = posix_fallocate(file_.get(), 0, static_cast<off_t>(bytes_));
    if (error != EINTR) break;
    error = 0;
  }
  if (error == ENOSPC)
    return Error{"no room for a segment of " + kilobytes(static_cast<double>(bytes_)) + " in " +
                     folder_path_,
                 kRoomHint};
  if (error != 0)
    return Error{"cannot allocate a segment in " + folder_path_ + ": " + errno_text(error),
                 kRoomHint};
  return check_room(0, shm_share);  // again: others may have begun at the same moment
}

// What all segments of this user take, this one included, against what would be free without them.
Status SegmentFile::check_room(size_t pending_bytes, double shm_share) const {
  struct statvfs fs;
  if (fstatvfs(folder_.get(), &fs) != 0)
    return Error{"cannot read the free space of " + folder_path_ + ": " + errno_text(), kRoomHint};
  if (fs.f_blocks == 0) return ok();  // a tmpfs without a limit
  const double used = static_cast<double>(segment_bytes_of_user(folder_path_));
  const double free = static_cast<double>(fs.f_bavail) * static_cast<double>(fs.f_frsize) + used;
  const double wanted = used + static_cast<double>(pending_bytes);
  if (wanted <= shm_share * free) return ok();
  char share[32];
  std::snprintf(share, sizeof(share), "%g %%", shm_share * 100);
  return Error{"no room for a segment of " + kilobytes(static_cast<double>(bytes_)) + " in " +
                   folder_path_ + ": all segments would take " + kilobytes(wanted) +
                   ", more than " + share + " of the " + kilobytes(free) + " free",
               kRoomHint};
}

Result<void*> SegmentFile::map() const {
  void* memory =
      mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file_.get(), 0);
  if (memory == MAP_FAILED)
    return Error{
        "cannot map a segment of " + kilobytes(static_cast<double>(bytes_)) + ": " + errno_text(),
        "check the address space limit: ulimit -v"};
  return memory;
}

Status SegmentFile::give_name() {
  if (renameat(folder_.get(), temporary_name().c_str(), folder_.get(), name_.c_str()) != 0)
    return Error{"cannot name the segment " + name_ + " in " + folder_path_ + ": " + errno_text(),
                 ""};
  file_.reset();
  return ok();
}

OwnProcess own_process() {
  const OwnProcess unknown{getpid(), 0};
  const auto stat = read_file("/proc/self/stat", 4096);
  if (!stat) return unknown;
  const size_t name_end = stat->rfind(')');  // the name may hold spaces and parentheses
  if (name_end == std::string::npos) return unknown;
  const auto pid = parse_number<int32_t>(std::string_view(*stat).substr(0, stat->find(' ')));
  const auto fields = split(std::string_view(*stat).substr(name_end + 1), ' ');
  constexpr size_t kStartField = 22 - 2;  // fields[0] is empty, fields[1] is field 3
  if (!pid || fields.size() <= kStartField) return unknown;
  return {*pid, parse_number<int64_t>(fields[kStartField]).value_or(0)};
}

uint64_t random_nonce() {
  uint64_t nonce = 0;
  if (getrandom(&nonce, sizeof(nonce), GRND_NONBLOCK) == sizeof(nonce)) return nonce;
  // Early in boot: the file is created exclusively, so an equal name is an error and not a mix-up.
  return static_cast<uint64_t>(monotonic_ns()) * 0x9e3779b97f4a7c15 ^
         static_cast<uint64_t>(getpid()) << 40;
}

}  // namespace stepscope::ring
