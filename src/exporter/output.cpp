#include "exporter/output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/file.h"
#include "base/text.h"

namespace stepscope::exporter {
namespace {

constexpr size_t kBuffer = 64 << 10;

std::string shown(const std::string& path) { return shell_quote(printable(path, 300)); }

Error no_write(const std::string& place, int error_number) {
  const std::string hint = error_number == ENOSPC || error_number == EDQUOT
                               ? "make room, or give another place with --output"
                               : "give another place with --output";
  return {"could not write " + place + ": " + errno_text(error_number), hint};
}

}  // namespace

Result<Output> Output::open(const std::string& path, bool overwrite) {
  Output out;
  out.shown_ = shown(path);
  out.place_ = path;
  out.overwrite_ = overwrite;
  if (path == "-") {
    out.shown_ = "standard output";
    out.fd_ = Fd(::fcntl(1, F_DUPFD_CLOEXEC, 3));
    if (!out.fd_) return no_write(out.shown_, errno);
    return out;
  }
  struct stat st;
  if (::stat(path.c_str(), &st) == 0) {
    if (!S_ISREG(st.st_mode))
      return Error{out.shown_ + " is not a regular file", "give a file, or - for standard output"};
    if (!overwrite)
      return Error{out.shown_ + " is there already", "to replace it, add --overwrite"};
    if (char* real = ::realpath(path.c_str(), nullptr)) {  // the link stays, its file is replaced
      out.place_ = real;
      std::free(real);
    }
  }
  out.temporary_ = out.place_ + ".part-" + std::to_string(::getpid());
  out.fd_ = Fd(::open(out.temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!out.fd_) {
    const Error error = no_write(out.shown_, errno);
    out.temporary_.clear();
    return error;
  }
  return out;
}

Output Output::to(Fd fd, const std::string& name) {
  Output out;
  out.shown_ = name;
  out.fd_ = std::move(fd);
  return out;
}

Output::Output(Output&& other) noexcept
    : shown_(std::move(other.shown_)),
      place_(std::move(other.place_)),
      temporary_(std::exchange(other.temporary_, "")),
      buffer_(std::move(other.buffer_)),
      fd_(std::move(other.fd_)),
      overwrite_(other.overwrite_),
      error_number_(other.error_number_),
      size_(other.size_) {}

Output::~Output() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void Output::write(std::string_view text) {
  buffer_ += text;
  if (buffer_.size() >= kBuffer) flush();
}

void Output::flush() {
  if (error_number_ == 0 && !buffer_.empty() && !write_all(fd_.get(), buffer_))
    error_number_ = errno == 0 ? EIO : errno;
  buffer_.clear();
}

Status Output::finish() {
  flush();
  if (temporary_.empty()) {
    fd_.reset();
    if (error_number_ != 0) return no_write(shown_, error_number_);
    return ok();
  }
  struct stat st;
  if (::fstat(fd_.get(), &st) == 0) size_ = st.st_size;
  if (error_number_ == 0 && ::fsync(fd_.get()) != 0 && errno != EINVAL) error_number_ = errno;
  fd_.reset();
  if (error_number_ == 0) {
    // Without replacing what came meanwhile; where the file system cannot promise that, as promised at the start.
    int done = overwrite_ ? ::rename(temporary_.c_str(), place_.c_str())
                          : ::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, place_.c_str(),
                                        RENAME_NOREPLACE);
    if (done != 0 && !overwrite_ && (errno == EINVAL || errno == ENOSYS))
      done = ::rename(temporary_.c_str(), place_.c_str());
    if (done != 0) error_number_ = errno;
  }
  if (error_number_ != 0) return no_write(shown_, error_number_);
  temporary_.clear();
  return ok();
}

}  // namespace stepscope::exporter
