// stepscope top: the terminal view, in Python (python/stepscope/top), over the run's API. This
// resolves the run, answers for it on a socket of the view's own, and becomes the interpreter that
// stepscope was installed for.
//
//   this process ---- fork ----> RunApi on SOCKET, until the view has ended (a pipe says so)
//        exec --> python: the view, asks SOCKET
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>

#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/card_text.h"
#include "cli/child.h"
#include "cli/commands.h"
#include "cli/install.h"
#include "cli/run_api.h"
#include "cli/run_list.h"
#include "cli/say.h"
#include "serve/loop.h"

namespace stepscope::cli {
namespace {

struct TopOptions {
  std::string run, layout = "auto", token_file, ca;
};

// Not -m: that would look for modules in the current folder, where a training script's random.py
// may lie.
constexpr const char* kStart =
    "import sys\n"
    "sys.path[:] = [p for p in sys.path if p]\n"
    "sys.path.append(sys.argv.pop(1))\n"
    "from stepscope.top.__main__ import main\n"
    "sys.exit(main())";

bool is_url(const std::string& run) {
  return run.starts_with("http://") || run.starts_with("https://");
}

bool on_terminal() {
  const char* terminal = std::getenv("TERM");
  return ::isatty(0) != 0 && ::isatty(1) != 0 && terminal != nullptr && *terminal != '\0' &&
         std::string(terminal) != "dumb";
}

// A folder that only we enter; where the path would be too long for a socket, in /tmp.
Result<std::string> make_private_folder() {
  constexpr size_t kMostPath = 80;
  for (const char* name : {"XDG_RUNTIME_DIR", "TMPDIR", ""}) {
    const char* value = *name == '\0' ? "/tmp" : std::getenv(name);
    if (value == nullptr || *value == '\0' || std::string(value).size() > kMostPath) continue;
    std::string path = std::string(value) + "/stepscope-top-XXXXXX";
    if (::mkdtemp(path.data()) != nullptr) return path;
  }
  return Error{"no folder for the view's socket could be made: " + errno_text(), "set TMPDIR"};
}

struct Pipe {
  Fd reader, writer;
};
Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe(ends) != 0) return Error{"no pipe: " + errno_text(), ""};
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

// In the forked process. Nothing of it is seen on the terminal, which is the view's.
void answer_until_end(const std::string& run_folder, const std::string& private_folder,
                      const Fd& view_lives, const Fd& ready) {
  ::setsid();
  ::signal(SIGPIPE, SIG_IGN);
  RunApi run(run_folder);
  serve::Loop loop;
  const Status listening =
      loop.listen(private_folder + "/api.sock",
                  [&](const serve::Request& request) { return run.answer(request); });
  (void)write_all(ready.get(), listening ? "+" : listening.error().message);
  ::close(ready.get());
  if (!listening) return;
  for (int fd = 0; fd < 3; ++fd)
    if (fd != view_lives.get()) ::close(fd);
  loop.wake_on(view_lives.get());
  char byte;
  do loop.wait(std::chrono::milliseconds(60'000));
  while (::read(view_lives.get(), &byte, 1) < 0 && errno == EAGAIN);
}

// The path of a socket on which the run is answered for as long as this process lives, whatever
// program it becomes.
Result<std::string> answer_beside(const std::string& run_folder) {
  auto folder = make_private_folder();
  auto lives = make_pipe(), ready = make_pipe();
  if (!folder) return folder.error();
  if (!lives || !ready) return lives ? ready.error() : lives.error();
  const pid_t pid = ::fork();
  if (pid < 0) {
    remove_tree(*folder);
    return Error{"no process could be started: " + errno_text(), ""};
  }
  if (pid == 0) {
    lives->writer.reset();
    ready->reader.reset();
    ::fcntl(lives->reader.get(), F_SETFL, O_NONBLOCK);
    answer_until_end(run_folder, *folder, lives->reader, ready->writer);
    remove_tree(*folder);
    ::_exit(0);
  }
  ready->writer.reset();
  std::string said(512, '\0');
  const ssize_t n = ::read(ready->reader.get(), said.data(), said.size());
  said.resize(n > 0 ? static_cast<size_t>(n) : 0);
  if (said != "+") return Error{said.empty() ? "the view's socket never came" : said, ""};
  (void)lives->writer.release();  // closed by the end of this process, however it comes
  return *folder + "/api.sock";
}

int become_view(const TopOptions& options, std::vector<std::string> arguments) {
  const auto python = find_python(own_path(), current_environment());
  if (!python)
    return wrong_use(
        {"the Python that stepscope was installed for was not found beside " + own_path(),
         "install it again (pip install .); without it: stepscope status --watch"});
  std::vector<std::string> command = {python->interpreter, "-c", kStart, python->packages};
  command.insert(command.end(), arguments.begin(), arguments.end());
  command.insert(command.end(), {"--layout", options.layout});
  const ExecFailure failure = become(command);
  return wrong_use(failure.error);
}

int top(const TopOptions& options) {
  if (is_url(options.run)) {
    std::vector<std::string> arguments = {options.run};
    if (!options.token_file.empty())
      arguments.insert(arguments.end(), {"--token-file", options.token_file});
    if (!options.ca.empty()) arguments.insert(arguments.end(), {"--ca", options.ca});
    return become_view(options, std::move(arguments));
  }
  const auto folder = resolve_run(options.run, absolute_path("."), current_environment());
  if (!folder) return wrong_use(folder.error());
  if (!on_terminal()) {
    const auto text = status_of(*folder, 1);
    if (!text) return wrong_use(text.error());
    print(*text);
    return kFine;
  }
  const auto socket = answer_beside(*folder);
  if (!socket) return wrong_use(socket.error());
  return become_view(options, {"--socket", *socket});
}

}  // namespace

void add_top(CLI::App& app, Action& action) {
  const auto options = std::make_shared<TopOptions>();
  CLI::App* top_app = app.add_subcommand("top", "Watch a run in the terminal");
  top_app->footer(
      "Of a live run, or of one that has ended. ? shows the keys. Needs the extra: pip install "
      "'stepscope[top]'.\nWithout a terminal it prints what stepscope status prints.");
  top_app->add_option("RUN", options->run,
                      "Folder, name or id of the run (default: the newest), or the URL that run "
                      "--serve or serve printed");
  top_app
      ->add_option("--layout", options->layout, "How much there is on the screen (default: auto)")
      ->option_text("auto|full|compact|line")
      ->check(CLI::IsMember({"auto", "full", "compact", "line"}));
  top_app
      ->add_option("--token-file", options->token_file,
                   "With a URL: file that holds the server's token")
      ->option_text("FILE");
  top_app->add_option("--ca", options->ca, "With https: who signed the server's certificate")
      ->option_text("FILE");
  top_app->callback([&action, options] { action = [options] { return top(*options); }; });
}

}  // namespace stepscope::cli
