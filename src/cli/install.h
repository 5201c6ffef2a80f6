// Where this product is installed: the binary itself, and the Python folder that observed
// interpreters are given.
#pragma once

#include <optional>
#include <string>

#include "cli/identity.h"

namespace stepscope::cli {

std::string own_path();  // of the running binary; empty when nothing tells

// <package>/_inject with sitecustomize.py in it: $STEPSCOPE_HOME/_inject, else beside the binary's
// prefix.
std::optional<std::string> find_inject_folder(const std::string& binary,
                                              const Environment& environment);

// <package>/page, the built page; empty where there is none.
std::string find_page_folder(const std::string& binary, const Environment& environment);

// The interpreter that stepscope was installed for, and the folder that holds its package.
struct OwnPython {
  std::string interpreter, packages;
};
std::optional<OwnPython> find_python(const std::string& binary, const Environment& environment);

}  // namespace stepscope::cli
