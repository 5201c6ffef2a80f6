#include <string>
#include <vector>

#include "cli/command_line.h"

int main(int argc, char** argv) {
  return stepscope::cli::run_command_line(
      std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
}
