#include <fcntl.h>

#include <string>
#include <vector>

#include "cli/command_line.h"

// Where a standard stream is closed, the next file opened would take its number, and what is meant for
// people would be written into it. Not passed on: a command that is run finds it closed, as without us.
static void occupy_standard_streams() {
  for (int fd = 0; fd <= 2; ++fd)
    if (::fcntl(fd, F_GETFD) < 0) (void)::open("/dev/null", O_RDWR | O_CLOEXEC);
}

int main(int argc, char** argv) {
  occupy_standard_streams();
  return stepscope::cli::run_command_line(
      std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
}
