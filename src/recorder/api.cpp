// include/stepscope/recorder.h over the recorder.
#include "stepscope/recorder.h"

#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "base/text.h"
#include "recorder/recorder.h"

namespace stepscope {
namespace {

using recorder::Recorder;

// One loader and one optimizer: a C++ loop tells its phases, not its objects.
constexpr uint64_t kTheOne = 1;

int env_number(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : parse_number<int>(text).value_or(otherwise);
}
std::string env_text(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

std::string executable() {
  char path[256];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof(path));
  return n > 0 ? std::string(path, static_cast<size_t>(n)) : std::string();
}

recorder::OpenOptions options_of_environment(const std::string& folder) {
  recorder::OpenOptions options;
  options.folder = folder;
  const int kb = env_number("STEPSCOPE_SEGMENT_KB", 0);
  if (kb > 0) options.segment_bytes = static_cast<size_t>(kb) * 1024;
  const std::string share = env_text("STEPSCOPE_SHM_SHARE");
  std::from_chars(share.data(), share.data() + share.size(),
                  options.shm_share);  // unreadable: stays as it was
  options.rank = env_number("RANK", -1);
  options.local_rank = env_number("LOCAL_RANK", -1);
  options.world_size = env_number("WORLD_SIZE", 1);
  options.local_world_size = env_number("LOCAL_WORLD_SIZE", 1);
  options.node_rank = env_number("GROUP_RANK", -1);
  options.attempt = env_number("TORCHELASTIC_RESTART_COUNT", 0);
  options.run_id = env_text("STEPSCOPE_RUN_ID");
  options.executable = executable();
  return options;
}

}  // namespace

PhaseScope::PhaseScope(const char* name) : exceptions_(std::uncaught_exceptions()) {
  Recorder& r = Recorder::instance();
  phase_ = r.recording() ? r.name(name) : static_cast<uint8_t>(Phase::kOther);
  switch (static_cast<Phase>(phase_)) {
    case Phase::kInput:
      r.fetch_begin(kTheOne, true);
      break;
    case Phase::kForward:
      r.forward_begin(true, true);
      break;
    case Phase::kBackward:
      r.backward_begin(false);
      break;
    case Phase::kOptimizer:
      r.optimizer_begin(kTheOne);
      break;
    default:
      r.begin(phase_);
  }
}

PhaseScope::~PhaseScope() {
  Recorder& r = Recorder::instance();
  const bool raised = std::uncaught_exceptions() > exceptions_;
  switch (static_cast<Phase>(phase_)) {
    case Phase::kInput:
      if (raised)
        r.fetch_failed(/*exhausted=*/false);
      else
        r.fetch_end(wire::kUnmeasured);
      break;
    case Phase::kForward:
      r.forward_end(raised);
      break;
    case Phase::kBackward:
      r.backward_end(raised, false);
      break;
    case Phase::kOptimizer:
      if (!raised) r.optimizer_end(kTheOne);  // one without an end is one that raised
      break;
    default:
      r.end(phase_, raised);
  }
}

StepScope::StepScope() : exceptions_(std::uncaught_exceptions()) {
  Recorder::instance().enter_step();
}
StepScope::~StepScope() {
  Recorder::instance().exit_step(std::uncaught_exceptions() > exceptions_);
}
void StepScope::samples(uint64_t count) { Recorder::instance().add_samples(count); }

Run::~Run() {
  if (owner_) Recorder::instance().close();
}
bool Run::recording() const { return Recorder::instance().recording(); }

Run start() {
  Run run;
  const std::string folder = env_text("STEPSCOPE_SEGMENTS");
  if (folder.empty() || env_text("STEPSCOPE") == "0") {
    run.why_not_ = folder.empty() ? "not started by `stepscope run`" : "STEPSCOPE=0";
    return run;
  }
  if (Recorder::instance().is_open()) return run;
  const Status opened = Recorder::instance().open(options_of_environment(folder));
  run.owner_ = static_cast<bool>(opened);
  if (!opened) {
    run.why_not_ = opened.error().message;
    std::fprintf(stderr, "stepscope: not recording: %s\nhint: %s\n", run.why_not_.c_str(),
                 opened.error().hint.c_str());
  }
  return run;
}

}  // namespace stepscope
