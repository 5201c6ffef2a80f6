// The file an export goes to: written beside its place and renamed there when it is whole, or stdout.
//
// Thread safety: one owner. Invariants: nobody sees half a file, what was there stays until the new one is whole, and
// stays for good unless it may be overwritten. The first failure is kept and told by finish(). 64 KB of buffer.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace stepscope::exporter {

class Output {
 public:
  // "-" is stdout. An Error where the file is there already (and may not be overwritten), is no regular file, or its
  // folder takes none.
  static Result<Output> open(const std::string& path, bool overwrite);
  // A pipe that somebody else reads; shown in errors as `name`.
  static Output to(Fd fd, const std::string& name);
  Output(Output&&) noexcept;
  Output& operator=(Output&&) = delete;
  ~Output();  // unfinished: nothing is left

  void write(std::string_view text);
  bool failed() const { return error_number_ != 0; }  // going on is of no use
  Status finish();

  int fd() const { return fd_.get(); }  // for a program that writes here itself, then finish()
  const std::string& temporary() const { return temporary_; }  // empty: it is no file
  off_t size() const { return size_; }                         // of the finished file

 private:
  Output() = default;
  void flush();

  std::string shown_;  // in errors, as it was given
  std::string place_;  // links followed
  std::string temporary_, buffer_;
  Fd fd_;
  bool overwrite_ = false;
  int error_number_ = 0;
  off_t size_ = 0;
};

}  // namespace stepscope::exporter
