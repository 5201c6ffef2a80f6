#include "probe/storage.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <random>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"

namespace stepscope::probe {
namespace {

constexpr size_t kChunk = 1 << 20;
constexpr double kScanShare = 0.3, kReadShare = 0.2;  // of the seconds
constexpr size_t kLeastFiles = 8;
constexpr double kStillThere = 0.1;  // of the pages: not cold

double seconds_since(int64_t begin_ns) {
  return static_cast<double>(monotonic_ns() - begin_ns) / 1e9;
}

Fd open_file(const std::string& path) {
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  Fd fd(::open(path.c_str(), kFlags | O_NOATIME));
  if (!fd && errno == EPERM) fd = Fd(::open(path.c_str(), kFlags));  // not ours
  struct stat st;
  if (fd && (::fstat(fd.get(), &st) != 0 || !S_ISREG(st.st_mode))) fd.reset();
  return fd;
}

// Share of the file's pages that are in the page cache; nothing for an empty one.
std::optional<double> resident(int fd, int64_t bytes) {
  const auto length = static_cast<size_t>(std::min<int64_t>(bytes, 64 << 20));
  if (length == 0) return std::nullopt;
  void* at = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return std::nullopt;
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages((length + page - 1) / page);
  const int done = ::mincore(at, length, pages.data());
  ::munmap(at, length);
  if (done != 0) return std::nullopt;
  const auto there = std::count_if(pages.begin(), pages.end(), [](auto p) { return (p & 1) != 0; });
  return static_cast<double>(there) / static_cast<double>(pages.size());
}

// The pages of these files leave the page cache; true when they did.
bool make_cold(const std::vector<File>& files) {
  double still = 0;
  int looked = 0;
  for (const File& file : files) {
    const Fd fd = open_file(file.path);
    if (!fd) continue;
    ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
    if (const auto share = resident(fd.get(), file.bytes)) {
      still += *share;
      ++looked;
    }
  }
  return looked > 0 && still / looked < kStillThere;
}

// All of a file, at most `most` bytes and until then; -1 when it cannot be read.
int64_t read_all(int fd, int64_t most, int64_t until_ns, std::vector<char>& buffer) {
  int64_t bytes = 0;
  while (bytes < most && (bytes == 0 || monotonic_ns() < until_ns)) {
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    if (n == 0) break;
    bytes += n;
  }
  return bytes;
}

Reading read_files(const std::vector<File>& files, bool cold, double most_seconds) {
  Reading out;
  out.cold = cold && make_cold(files);
  std::vector<char> buffer(kChunk);
  std::vector<double> open_us;
  const int64_t begin_ns = monotonic_ns();
  const int64_t until_ns = begin_ns + static_cast<int64_t>(most_seconds * 1e9);
  for (const File& file : files) {
    const int64_t before_ns = monotonic_ns();
    if (out.bytes >= kMostBytes || before_ns > until_ns) break;
    const Fd fd = open_file(file.path);
    open_us.push_back(static_cast<double>(monotonic_ns() - before_ns) / 1e3);
    const int64_t bytes = fd ? read_all(fd.get(), kMostBytes - out.bytes, until_ns, buffer) : -1;
    if (bytes < 0) {
      ++out.failed;
      continue;
    }
    ++out.files;
    out.bytes += bytes;
  }
  out.seconds = seconds_since(begin_ns);
  if (out.files == 0) out.not_measured = "no file could be read";
  if (open_us.empty()) return out;
  std::sort(open_us.begin(), open_us.end());
  out.open_us_p50 = open_us[open_us.size() / 2];
  out.open_us_p95 = open_us[open_us.size() * 95 / 100];
  return out;
}

struct Scratch {
  Fd fd;
  std::string folder;
  bool elsewhere = false;
};

bool lies_in(const std::string& folder, const std::string& data) {
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(folder.c_str(), nullptr), &::free);
  const std::unique_ptr<char, void (*)(void*)> top(::realpath(data.c_str(), nullptr), &::free);
  if (!real || !top) return true;
  return (std::string(real.get()) + "/").starts_with(std::string(top.get()) + "/");
}

// One on the file system of the data, if there is one; never in memory, never below the data.
std::optional<Scratch> scratch_for(const StorageOptions& options, int64_t bytes) {
  struct stat data;
  if (::stat(options.path.c_str(), &data) != 0) return std::nullopt;
  for (const bool elsewhere : {false, true}) {
    for (const std::string& folder : options.scratch) {
      struct statfs kind;
      struct stat place;
      if (::statfs(folder.c_str(), &kind) != 0 || ::stat(folder.c_str(), &place) != 0) continue;
      if ((place.st_dev != data.st_dev) != elsewhere || kind.f_type == TMPFS_MAGIC) continue;
      const double free = static_cast<double>(kind.f_bavail) * static_cast<double>(kind.f_bsize);
      if (static_cast<double>(bytes) > kRoomShare * free || lies_in(folder, options.path)) continue;
      Fd fd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
      if (fd) return Scratch{std::move(fd), folder, elsewhere};
    }
  }
  return std::nullopt;
}

// The files' bytes, one after the other. False when it was cut short by the disk or the time.
bool pack(const std::vector<File>& files, int64_t most, int to, double most_seconds,
          int64_t& count) {
  std::vector<char> buffer(kChunk);
  const int64_t begin_ns = monotonic_ns();
  int64_t bytes = 0;
  for (const File& file : files) {
    const Fd fd = open_file(file.path);
    if (!fd) continue;
    ssize_t n;
    while ((n = ::read(fd.get(), buffer.data(), buffer.size())) > 0) {
      if (!write_all(to, {buffer.data(), static_cast<size_t>(n)})) return false;
      bytes += n;
      if (bytes >= most) break;
    }
    ++count;
    if (bytes >= most || seconds_since(begin_ns) > most_seconds) break;
  }
  return ::fdatasync(to) == 0;
}

void read_packed(const StorageOptions& options, const std::vector<File>& files, Storage& out) {
  int64_t bytes = 0;
  for (const File& file : files) bytes += file.bytes;
  bytes = std::min(bytes, kMostBytes);
  if (files.size() < kLeastFiles) {
    out.packed.not_measured = "too few files";
    return;
  }
  const auto scratch = scratch_for(options, bytes);
  if (!scratch) {
    out.packed.not_measured = "no folder with room for a temporary file";
    return;
  }
  out.packed_where = scratch->folder;
  out.packed_elsewhere = scratch->elsewhere;
  int64_t count = 0;
  if (!pack(files, bytes, scratch->fd.get(), kReadShare * options.seconds, count)) {
    out.packed.not_measured = "the temporary file could not be written: " + errno_text();
    return;
  }
  const off_t size = ::lseek(scratch->fd.get(), 0, SEEK_END);
  ::posix_fadvise(scratch->fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  const auto still = resident(scratch->fd.get(), size);
  out.packed.cold = still && *still < kStillThere;
  ::lseek(scratch->fd.get(), 0, SEEK_SET);
  std::vector<char> buffer(kChunk);
  const int64_t begin_ns = monotonic_ns();
  const int64_t read = read_all(scratch->fd.get(), kMostBytes, INT64_MAX, buffer);
  out.packed.seconds = seconds_since(begin_ns);
  out.packed.bytes = std::max<int64_t>(0, read);
  out.packed.files = count;
  if (read <= 0) out.packed.not_measured = "the temporary file could not be read";
}

// Time a byte, because the packed file may have been cut short. Cold against warm says nothing.
void compare(Storage& out) {
  const Reading& files = out.cold_random;
  if (!files.not_measured.empty())
    out.not_compared = files.not_measured;
  else if (!out.packed.not_measured.empty())
    out.not_compared = out.packed.not_measured;
  else if (files.cold != out.packed.cold)
    out.not_compared = files.cold ? "the packed file did not leave the page cache"
                                  : "the files did not leave the page cache";
  else if (files.bytes == 0)
    out.not_compared = "the files are empty";
  if (!out.not_compared.empty()) return;
  out.packing_saves = std::clamp(1 - files.bytes_per_s() / out.packed.bytes_per_s(), 0.0, 1.0);
}

}  // namespace

Result<Storage> measure(const StorageOptions& options) {
  auto scanned =
      scan(options.path, monotonic_ns() + static_cast<int64_t>(kScanShare * options.seconds * 1e9));
  if (!scanned) return scanned.error();
  Storage out;
  out.path = options.path;
  out.scan = std::move(*scanned);
  if (out.scan.sample.empty()) {
    for (Reading* reading : {&out.cold_random, &out.cold_in_order, &out.warm_random, &out.packed})
      reading->not_measured = "there is no file";
    out.not_compared = out.cold_random.not_measured;
    return out;
  }
  std::vector<int64_t> sizes;
  for (const File& file : out.scan.sample) sizes.push_back(file.bytes);
  std::sort(sizes.begin(), sizes.end());
  out.size_p50 = sizes[sizes.size() / 2];
  out.size_p95 = sizes[sizes.size() * 95 / 100];
  out.size_max = sizes.back();

  std::vector<File> random = out.scan.sample;
  std::shuffle(random.begin(), random.end(), std::minstd_rand(1));
  const double each = kReadShare * options.seconds;
  out.cold_random = read_files(random, true, each);
  random.resize(std::max<size_t>(
      1, std::min(random.size(),
                  static_cast<size_t>(out.cold_random.files + out.cold_random.failed))));
  out.warm_random = read_files(random, false, each);
  out.cold_in_order = read_files(out.scan.neighbours, true, each);
  read_packed(options, random, out);
  compare(out);
  return out;
}

}  // namespace stepscope::probe
