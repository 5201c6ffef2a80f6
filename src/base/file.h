// Small files, whole: read with a limit, written so that a reader sees the old or the new one and
// never half.
//
// Thread safety: reentrant; no state. Errors name the path and the system's reason.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stepscope {

inline constexpr size_t kMaxSmallFile = 64 << 20;

Result<std::string> read_file(const std::string& path, size_t max_bytes = kMaxSmallFile);

// A temporary name beside it, then rename. durable: fsync before the rename.
Status write_file(const std::string& path, std::string_view content, mode_t mode = 0644,
                  bool durable = false);

// Writes all of it, through short writes and EINTR; false with errno set otherwise.
bool write_all(int fd, std::string_view content);

bool exists(const std::string& path);     // of any kind; a dangling link too
bool is_folder(const std::string& path);  // links followed

// Names in a folder without . and .., sorted; empty when it cannot be read.
std::vector<std::string> list_folder(const std::string& path);

Status make_folders(const std::string& path, mode_t mode = 0777);  // like mkdir -p
void remove_tree(const std::string& path);  // links are removed, not followed

// Absolute, without . and .. and without following links; relative to the current folder.
std::string absolute_path(const std::string& path);

}  // namespace stepscope
