// Walks a folder of data: how many files, how large, and a fair sample of them.
//
// Opens nothing but folders. Links to files count as their targets; links to folders are followed
// once, so that a loop ends. Whatever is neither file nor folder (FIFOs, sockets, devices) is counted
// and never opened. Bounded by a deadline and by kMostEntries; the sample is uniform over what was
// seen (reservoir sampling), with a fixed seed.
//
// Thread safety: reentrant.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace stepscope::probe {

inline constexpr int64_t kMostEntries = 2'000'000;
inline constexpr size_t kSample = 512;

struct File {
  std::string path;
  int64_t bytes = 0;
  int64_t place = 0;  // in the order in which the folders list them
};

struct Scan {
  bool complete = true;  // false: the deadline or kMostEntries came first; counts are at least
  int64_t files = 0, folders = 0, links = 0, special = 0, unreadable = 0, empty_files = 0;
  int64_t bytes = 0;
  std::vector<File> sample;      // by place
  std::vector<File> neighbours;  // the first files, as they follow each other
};

Result<Scan> scan(const std::string& path, int64_t deadline_ns);

}  // namespace stepscope::probe
