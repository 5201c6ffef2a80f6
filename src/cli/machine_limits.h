// What a process and its loader workers may use, for the tuner: cores, memory, /dev/shm, open files.
//
// Thread safety: reentrant. Below a root that tests replace: "" reads /proc, /sys and /dev/shm, else
// <root>/proc ... Whatever cannot be read is absent and limits nothing.
#pragma once

#include <cstdint>
#include <string>

#include "tuner/limits.h"

namespace stepscope::cli {

// local_ranks is left to the caller.
tuner::Machine machine_limits(int32_t pid, const std::string& root = "");

}  // namespace stepscope::cli
