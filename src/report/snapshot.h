// For tests: a view as text against src/report/snapshots. STEPSCOPE_UPDATE=1 writes them anew.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/file.h"

namespace stepscope::report {

inline void expect_snapshot(const std::string& name, const std::string& text) {
  const std::string path =
      std::string(STEPSCOPE_SOURCE_DIR) + "/src/report/snapshots/" + name + ".txt";
  if (std::getenv("STEPSCOPE_UPDATE") != nullptr) {
    ASSERT_TRUE(write_file(path, text));
    return;
  }
  const auto expected = read_file(path);
  ASSERT_TRUE(expected) << expected.error().message << "\nhint: STEPSCOPE_UPDATE=1";
  EXPECT_EQ(text, *expected);
}

}  // namespace stepscope::report
