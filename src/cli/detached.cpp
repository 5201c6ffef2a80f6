#include "cli/detached.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/hub_options.h"
#include "cli/json.h"
#include "cli/run_folder.h"
#include "model/settings.h"
#include "ring/segment_file.h"

namespace stepscope::cli {
namespace {

constexpr size_t kMaxToml = 1 << 20;

// Nobody is there to be told about a wrong setting: it is said on the card, and the defaults hold.
Settings settings_in(const std::string& cwd, const Environment& environment,
                     std::vector<std::string>& notices) {
  const std::string path = cwd + "/stepscope.toml";
  const auto toml = read_file(path, kMaxToml);
  auto settings = load_settings({}, environment, toml ? *toml : "", path);
  if (settings) return *settings;
  notices.push_back(settings.error().message + ": the default settings were used");
  return {};
}

}  // namespace

Status detach() {
  for (int generation = 0; generation < 2; ++generation) {
    const pid_t pid = ::fork();
    if (pid < 0) return Error{"cannot start the agent: " + errno_text(), ""};
    if (pid > 0) ::_exit(0);
    if (generation == 0) ::setsid();
  }
  const int null = ::open("/dev/null", O_RDWR);
  if (null >= 0)
    for (const int fd : {0, 1, 2}) ::dup2(null, fd);
  if (::close_range(3, ~0u, 0) != 0)
    for (int fd = 3; fd < 1024; ++fd) ::close(fd);
  (void)!::chdir("/");
  return ok();
}

std::optional<RunInfo> found_run(const AgentOptions& options) {
  const Environment environment = current_environment();
  RunInfo info;
  info.started_wall_ns = wall_ns();
  info.started_mono_ns = monotonic_ns();
  info.id = options.id;
  info.command = parse_json_array(options.command_json);
  info.settings = settings_in(options.cwd, environment, info.notices).effective();
  const ring::OwnProcess own = ring::own_process();
  info.owner_pid = own.pid;
  info.owner_start = own.start_ticks;
  info.pid_namespace = own_pid_namespace();
  if (auto hub = check_hub_flags(options.hub)) {
    info.hub = std::move(*hub);
    if (!info.hub.empty()) info.hub["run_id"] = options.id;
  } else {  // as with settings
    info.notices.push_back(hub.error().message + ": this node joined no hub");
  }
  FolderRequest request;
  request.name = script_stem({options.name}) + "-" + time_label(info.started_wall_ns);
  request.cwd = options.cwd;
  request.run_id = options.id;
  request.environment = environment;
  auto folder = make_run_folder(request);
  if (!folder) return std::nullopt;
  info.folder = folder->path;
  info.name = folder->name;
  info.notices.insert(info.notices.end(), folder->notices.begin(), folder->notices.end());
  if (!write_run_info(options.segments, info)) return std::nullopt;
  return info;
}

}  // namespace stepscope::cli
