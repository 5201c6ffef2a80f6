#include "cli/page_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "cli/child.h"
#include "web/server.h"

namespace stepscope::cli {
namespace {

constexpr int64_t kRestartPauseNs = 500'000'000;
constexpr int kListenFd = 3, kPollMs = 10;
constexpr size_t kMaxLine = 4096;

}  // namespace

Result<PageProcess> PageProcess::prepare(const ServePlan& plan, const ServeFlags& flags,
                                         bool listens) {
  PageProcess page;
  page.arguments_ = {"stepscope", "serve"};
  if (listens) {
    auto listening = web::listen_on(plan.listen);
    if (!listening) return listening.error();
    page.listening_ = std::move(*listening);
    page.token_ = plan.token;
    page.url_ = page_url(plan, web::port_of(page.listening_));
    page.arguments_.insert(page.arguments_.end(), {"--listen-fd", std::to_string(kListenFd)});
  }
  if (!flags.otlp.empty()) page.arguments_.insert(page.arguments_.end(), {"--otlp", flags.otlp});
  if (!flags.remote_write.empty())
    page.arguments_.insert(page.arguments_.end(), {"--remote-write", flags.remote_write});
  if (flags.no_rank_metrics) page.arguments_.push_back("--no-rank-metrics");
  for (const std::string& host : plan.hosts)
    page.arguments_.insert(page.arguments_.end(), {"--allow-host", host});
  if (!plan.tls_cert.empty())
    page.arguments_.insert(page.arguments_.end(),
                           {"--tls-cert", plan.tls_cert, "--tls-key", plan.tls_key});
  return page;
}

void PageProcess::launch(const std::string& segment_folder) {
  ++starts_;
  next_start_ns_ = -1;
  int token[2];  // not among the arguments: those can be read by others
  if (::pipe2(token, O_CLOEXEC) != 0) return;
  const Fd read_end(token[0]);
  {
    const Fd write_end(token[1]);
    if (!write_all(write_end.get(), token_)) return;
  }
  int output[2];
  if (::pipe2(output, O_CLOEXEC | O_NONBLOCK) != 0) return;
  output_ = Fd(output[0]);
  const Fd write_end(output[1]);
  std::vector<std::string> words = arguments_;
  words.insert(words.end(), {"--of", segment_folder});
  pid_ = start_own(words,
                   {.input = read_end.get(), .output = write_end.get(), .extra = listening_.get()});
}

std::vector<std::string> PageProcess::read() {
  std::vector<std::string> lines;
  char buffer[4096];
  ssize_t n = 0;
  while (output_ && (n = ::read(output_.get(), buffer, sizeof buffer)) > 0) {
    line_.append(buffer, static_cast<size_t>(n));
    for (size_t end; (end = line_.find('\n')) != std::string::npos; line_.erase(0, end + 1))
      lines.push_back(line_.substr(0, end));
    if (line_.size() > kMaxLine) line_.clear();
  }
  if (n == 0) output_.reset();
  return lines;
}

bool PageProcess::reaped(pid_t pid, int status, int64_t now_ns) {
  if (pid != pid_ || pid <= 0) return false;
  pid_ = -1;
  const bool fine = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (!fine && starts_ <= kRestarts)
    next_start_ns_ = now_ns + kRestartPauseNs;
  else
    listening_.reset();  // nobody is to wait at a door that nobody opens
  return true;
}

std::optional<int64_t> PageProcess::next_start_ns() const {
  return next_start_ns_ < 0 ? std::nullopt : std::optional(next_start_ns_);
}

void PageProcess::wait_for_end() {
  const int64_t deadline = monotonic_ns() + kEndNs;
  listening_.reset();
  while (pid_ > 0 && monotonic_ns() < deadline) {
    if (::waitpid(pid_, nullptr, WNOHANG) != 0)
      pid_ = -1;
    else
      ::poll(nullptr, 0, kPollMs);
  }
}

}  // namespace stepscope::cli
