#include "cli/hub_member.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/hub_folder.h"
#include "cli/hub_options.h"
#include "cli/identity.h"
#include "cli/install.h"

namespace stepscope::cli {
namespace {

constexpr size_t kMaxEnvironment = 4 << 20;
constexpr int64_t kHubPauseNs =
    2'000'000'000;  // from one start of the hub to the next, doubled up to
constexpr int64_t kLongestHubPauseNs = 64'000'000'000;

std::string host_name() {
  utsname names{};
  return ::uname(&names) == 0 ? names.nodename : "localhost";
}

// The same for every agent of this run on this node, and for no other: two containers may have one
// host name and one boot id, two boots one host name.
std::string instance_of(const RunInfo& info, const std::string& segment_folder) {
  const auto boot = read_file("/proc/sys/kernel/random/boot_id", 256);
  std::string text = boot ? *boot : host_name();
  for (const std::string& part :
       {std::to_string(info.pid_namespace), segment_folder, std::to_string(info.started_wall_ns),
        std::to_string(info.started_mono_ns)})
    text += "\n" + part;
  return hub::hex(hub::sha256(text)).substr(0, 32);
}

// What the launcher gave a rank's process; torchrun's id is only there.
std::optional<Environment> environment_of(int32_t pid) {
  const auto content = read_file("/proc/" + std::to_string(pid) + "/environ", kMaxEnvironment);
  if (!content || content->empty()) return std::nullopt;
  Environment out;
  for (const std::string_view entry : split(*content, '\0')) {
    const size_t equals = entry.find('=');
    if (equals != std::string_view::npos)
      out.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return out;
}

}  // namespace

HubMember::HubMember(const RunInfo& info, const std::string& segment_folder)
    : info_(info), segment_folder_(segment_folder) {
  if (!value("listen").empty()) start_hub();
}

std::string HubMember::value(const char* key) const {
  const auto found = info_.hub.find(key);
  return found == info_.hub.end() ? "" : found->second;
}

// Outlives a killed agent: the next one finds the port taken, and its hub ends at once.
void HubMember::start_hub() {
  hub_started_ns_ = monotonic_ns();
  if (info_.folder.empty()) return;
  std::vector<std::string> words = {"stepscope",    "hub",
                                    "--listen",     value("listen"),
                                    "--token-file", value("token_file"),
                                    "--run-dir",    info_.folder + "/hub",
                                    "--until-gone", segment_folder_};
  if (!value("tls_cert").empty())
    words.insert(words.end(), {"--tls-cert", value("tls_cert"), "--tls-key", value("tls_key")});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const std::string log = info_.folder + "/hub.log", binary = own_path();
  hub_pid_ = ::fork();
  if (hub_pid_ != 0) return;
  ::setsid();
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  ::dup2(null, 0);
  for (const int fd : {1, 2}) ::dup2(out >= 0 ? out : null, fd);
  ::close_range(3, ~0u, 0);  // agent.lock among them
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execv("/proc/self/exe", arguments.data());
  ::execv(binary.c_str(), arguments.data());
  ::_exit(127);
}

void HubMember::join(const RunHistory& run, bool last_chance) {
  std::string id = value("run_id");
  for (size_t i = 0; id.empty() && i < run.ranks.size(); ++i) {
    const auto environment = environment_of(run.ranks[i].pid);
    if (!environment) continue;
    const Identity identity = choose_identity(
        {.run_id_flag = "", .environment = *environment, .pid_namespace = info_.pid_namespace});
    id = identity.shared ? identity.id : info_.id;
  }
  if (id.empty() && !last_chance) return;
  auto options = link_options(info_.hub);
  if (!options) {
    problem_ = options.error().message;
    return;
  }
  hub::pb::Join& join = options->join;
  join.set_run_id(id.empty() ? info_.id : id);
  join.set_run_name(info_.name);
  for (const std::string& word : info_.command) join.add_command(word);
  for (const auto& [key, setting] : info_.settings) (*join.mutable_settings())[key] = setting;
  join.set_node(host_name());
  join.set_instance(instance_of(info_, segment_folder_));
  link_ = std::make_unique<hub::Link>(std::move(*options));
}

// Ours was killed, and no other answers: the next one goes on with the runs in its folder.
void HubMember::keep_hub(int64_t now_ns) {
  if (value("listen").empty()) return;
  if (joined()) hub_pause_ns_ = kHubPauseNs;
  if (joined() || now_ns - hub_started_ns_ < std::max(kHubPauseNs, hub_pause_ns_)) return;
  if (hub_pid_ > 0 && ::kill(hub_pid_, 0) == 0) return;
  hub_pause_ns_ = std::min(2 * std::max(kHubPauseNs, hub_pause_ns_), kLongestHubPauseNs);
  start_hub();
}

void HubMember::tick(const RunHistory& run, int64_t now_ns) {
  if (info_.hub.empty() || run.ranks.empty() || !problem_.empty()) return;
  if (!link_) join(run, false);
  if (link_) link_->offer(run, now_ns);
  keep_hub(now_ns);
}

bool HubMember::joined() const { return link_ && link_->state().joined; }

std::vector<std::string> HubMember::news() {
  return link_ ? link_->news() : std::vector<std::string>{};
}

std::string HubMember::finish(const RunHistory& run, const std::string& folder,
                              int64_t deadline_ns) {
  if (info_.hub.empty() || run.ranks.empty()) return "";
  if (!link_ && problem_.empty()) join(run, true);
  const std::string hub = "the hub at " + value("url");
  if (!link_)
    return hub + " was not joined: " + problem_ + "; what follows is of this node's ranks alone";
  const auto summary = link_->finish(run, run.exit_code, deadline_ns);
  const hub::Link::State state = link_->state();
  link_.reset();
  if (summary) {
    const Status written = write_summary_of_hub(folder, *summary);
    return written ? "" : "the summary of the whole run was not stored: " + written.error().message;
  }
  std::string why = state.problem.empty() ? "no answer in time" : state.problem;
  if (!state.ever_joined)
    return hub + " was not joined: " + why + "; what follows is of this node's ranks alone";
  return hub + " gave no summary of the whole run: " + why +
         "; what follows is of this node's ranks alone";
}

}  // namespace stepscope::cli
