// Makes the file of a segment: allocated before anybody stores into it (a store into a full tmpfs
// is SIGBUS), within the share of shared memory that all segments of this user may take, and named
// only when it is complete.
//
// Thread safety: start-up only, one thread. Lifetime: removes its temporary file unless give_name()
// was called.
// Invariant: never on a disk; an error leaves nothing behind.
#pragma once

#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace stepscope::ring {

class SegmentFile {
 public:
  static Result<SegmentFile> allocate(const std::string& folder, const std::string& name,
                                      size_t bytes, double shm_share);
  SegmentFile(SegmentFile&&) noexcept = default;
  SegmentFile& operator=(SegmentFile&&) = delete;
  ~SegmentFile();

  Result<void*> map() const;
  Status give_name();

 private:
  SegmentFile(const std::string& folder, std::string name, size_t bytes)
      : name_(std::move(name)), bytes_(bytes) {
    folder_path_ = folder;
  }
  Status reserve(double shm_share);
  Status check_room(size_t pending_bytes, double shm_share) const;
  std::string temporary_name() const { return "tmp-" + name_; }

  Fd folder_, file_;
  std::string folder_path_, name_;
  size_t bytes_;
};

// This process as /proc names it, and so the agent: in a pid namespace under the /proc of its parent, getpid() is
// another number, and may be that of another process there. getpid() and 0 when /proc/self/stat cannot be read.
struct OwnProcess {
  int32_t pid;
  int64_t start_ticks;  // field 22
};
OwnProcess own_process();
uint64_t random_nonce();

}  // namespace stepscope::ring
