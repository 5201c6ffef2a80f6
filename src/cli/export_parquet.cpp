#include "cli/export_parquet.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/text.h"
#include "cli/child.h"
#include "cli/install.h"

namespace stepscope::cli {
namespace {

// As in top.cpp: not -m, so that no file of the current folder is taken for a module.
constexpr const char* kStart =
    "import sys\n"
    "sys.path[:] = [p for p in sys.path if p]\n"
    "sys.path.append(sys.argv.pop(1))\n"
    "from stepscope._parquet import main\n"
    "sys.exit(main())";

struct Writer {
  pid_t pid = -1;
  Fd rows;
};

Result<Writer> start(const std::vector<std::string>& command, int output) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error{"no pipe: " + errno_text(), ""};
  const Fd reader(ends[0]);
  Writer writer{-1, Fd(ends[1])};
  writer.pid = ::fork();
  if (writer.pid < 0) return Error{"no process could be started: " + errno_text(), ""};
  if (writer.pid == 0) {
    ::dup2(reader.get(), 0);
    ::dup2(output, 1);
    const ExecFailure failure = become(command);
    (void)!::write(2, failure.error.message.data(), failure.error.message.size());
    ::_exit(failure.exit_code);
  }
  return writer;
}

}  // namespace

Status write_parquet(const exporter::Table& table, exporter::Output& out) {
  const auto python = find_python(own_path(), current_environment());
  if (!python)
    return Error{"the Python that stepscope was installed for was not found beside " + own_path(),
                 "install it again (pip install .); without it: --to csv"};
  auto writer =
      start({python->interpreter, "-c", kStart, python->packages, table.columns_json()}, out.fd());
  if (!writer) return writer.error();
  auto* const before = ::signal(SIGPIPE, SIG_IGN);  // it ends early where pyarrow is missing
  exporter::Output rows = exporter::Output::to(std::move(writer->rows), "the rows");
  const Status read = table.write_rows(rows);
  const Status sent = rows.finish();
  ::signal(SIGPIPE, before);
  int status = 0;
  while (::waitpid(writer->pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status))
    return Error{"Python was killed by signal " + std::to_string(WTERMSIG(status)) +
                     " while it wrote the file",
                 "without it: --to csv"};
  if (WEXITSTATUS(status) != 0) return Error{};
  return read ? sent : read;
}

}  // namespace stepscope::cli
