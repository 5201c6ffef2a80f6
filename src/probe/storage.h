// What the storage under a folder of data can do, measured on a sample of its files.
//
//   cold, random      each file opened, read whole and closed, in random order, its pages dropped
//                     from the page cache before (POSIX_FADV_DONTNEED)
//   cold, in order    files that follow each other in their folders, likewise
//   warm, random      the first ones again
//   packed            the same bytes from one unnamed temporary file, cold, from its start to its end
//
// Where the pages cannot be dropped (tmpfs, a file that somebody holds mapped; checked with mincore)
// the figures say so. What the system knows of names and inodes stays: opening is never wholly cold.
// One thread: what one worker gets. Nothing is written below the folder, access times included where
// the files are ours; the temporary file has no name (O_TMPFILE) and is gone with the process.
//
// Thread safety: reentrant. Bounded: by `seconds`, kMostBytes a measurement, and by the room there is
// for the packed file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "probe/scan.h"

namespace stepscope::probe {

inline constexpr int64_t kMostBytes = 256 << 20;
inline constexpr double kRoomShare = 0.1;    // of the free space that the packed file may take
inline constexpr double kGainNothing = 0.1;  // less than this of reading time is no reason to pack

struct Reading {
  std::string not_measured;  // why; empty: it was
  int64_t files = 0, bytes = 0;
  int64_t failed = 0;  // could not be opened or read
  double seconds = 0;
  double open_us_p50 = 0, open_us_p95 = 0;
  bool cold = false;  // its pages were gone before
  double files_per_s() const { return seconds > 0 ? static_cast<double>(files) / seconds : 0; }
  double bytes_per_s() const { return seconds > 0 ? static_cast<double>(bytes) / seconds : 0; }
};

struct Storage {
  std::string path;
  Scan scan;
  int64_t size_p50 = 0, size_p95 = 0, size_max = 0;  // of the sample
  Reading cold_random, cold_in_order, warm_random, packed;
  std::string packed_where;       // its folder
  bool packed_elsewhere = false;  // on another file system than the data
  // Share of the time of reading files in random order that one packed file saves, byte for byte.
  std::optional<double> packing_saves;
  std::string not_compared;  // why it is absent
};

struct StorageOptions {
  std::string path;
  // Folders to try for the packed file; those on the data's own file system come first.
  std::vector<std::string> scratch;
  double seconds = 10;
};
Result<Storage> measure(const StorageOptions& options);

}  // namespace stepscope::probe
