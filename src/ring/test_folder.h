// A segment folder of its own for a test, on the real tmpfs; removed with all that is in it.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>
#include <vector>

#include "base/file.h"

namespace stepscope::ring {

class TestFolder {
 public:
  TestFolder() {
    char path[] = "/dev/shm/stepscope-test-XXXXXX";
    if (mkdtemp(path) == nullptr) ADD_FAILURE() << "cannot make " << path;
    root_ = path;
    path_ = root_ + "/run";
    if (!make_folders(path_, 0700)) ADD_FAILURE() << "cannot make " << path_;
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  ~TestFolder() { remove_tree(root_); }

  const std::string& path() const { return path_; }
  std::vector<std::string> names() const { return list_folder(path_); }
  std::string only_file() const {
    const auto all = names();
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? "" : path_ + "/" + all[0];
  }

 private:
  std::string root_, path_;
};

}  // namespace stepscope::ring
