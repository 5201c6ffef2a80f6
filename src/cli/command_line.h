// The whole command line: arguments in, exit code out. main() and the tests call it.
#pragma once

#include <string>
#include <vector>

namespace stepscope::cli {

int run_command_line(const std::vector<std::string>& arguments);  // without the program's name

}  // namespace stepscope::cli
