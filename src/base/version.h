// The product's version. CMakeLists.txt, pyproject.toml and stepscope.__version__ say the same
// (tests/cli checks).
#pragma once

namespace stepscope {

inline constexpr const char* kVersion = "0.1.0";

}  // namespace stepscope
