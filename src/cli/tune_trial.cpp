#include "cli/tune_trial.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <numeric>

#include "agent/segments.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/child.h"
#include "cli/child_environment.h"
#include "cli/observed.h"
#include "cli/process_tree.h"
#include "cli/segment_folder.h"
#include "cli/trial_watch.h"
#include "tuner/loop.h"

namespace stepscope::cli {
namespace {

constexpr int64_t kMs = 1'000'000, kSecond = 1'000'000'000;
constexpr int64_t kPollNs = 20 * kMs;
constexpr int64_t kCheckpointNs = 120 * kSecond;  // the longest that its end is waited for
constexpr size_t kOutputBytes = 4096;

double ms(int64_t ns) { return static_cast<double>(ns) / 1e6; }

double mean(const std::vector<double>& values) {
  return values.empty() ? 0
                        : std::accumulate(values.begin(), values.end(), 0.0) /
                              static_cast<double>(values.size());
}

bool measured(const StepSample& step, int warmup) {
  return step.step >= warmup && !step.failed && !step.profiled && !step.paused &&
         !step.incomplete && !step.compiled;
}

// Rare things in a step that no setting of the loader changes.
int64_t apart_ns(const StepSample& step) {
  return step[Phase::kValidation] + step[Phase::kCheckpoint] + step[Phase::kCompile] +
         step[Phase::kProfiler];
}

tuner::LoopRun figures(const RankHistory& rank, const TrialRequest& request) {
  tuner::LoopRun run;
  const int warmup = tuner::warmup_of(request.settings);
  std::vector<double> start_ms;
  int64_t first_at = 0, last_at = 0;
  for (const StepSample& step : rank.raw) {
    if (const int64_t start = step.parts.epoch_start_ns; start > 0 && !step.failed) {
      last_at = step.step;
      if (start_ms.empty()) first_at = step.step;
      start_ms.push_back(ms(start));
      continue;
    }
    if (!measured(step, warmup)) continue;
    run.step_ms.push_back(ms(step.total_ns() - apart_ns(step)));
    run.wait_ms.push_back(ms(step[Phase::kInput]));
  }
  run.steps_per_epoch = request.steps_per_epoch;
  if (run.steps_per_epoch <= 0 && start_ms.size() > 1)
    run.steps_per_epoch =
        static_cast<double>(last_at - first_at) / static_cast<double>(start_ms.size() - 1);
  tuner::add_epoch_starts(run, request.settings, start_ms);
  return run;
}

int counted(const RankHistory& rank, int warmup) {
  return static_cast<int>(
      std::count_if(rank.raw.begin(), rank.raw.end(), [&](const StepSample& step) {
        return measured(step, warmup) && step.parts.epoch_start_ns == 0;
      }));
}

Fd output_file(const Environment& environment) {
  const auto found = environment.find("TMPDIR");
  for (const std::string& folder :
       {found == environment.end() ? std::string("/tmp") : found->second, std::string("/tmp"),
        std::string("/dev/shm")})
    if (Fd fd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)); fd) return fd;
  return Fd(::open("/dev/null", O_RDWR | O_CLOEXEC));
}

std::string end_of(const Fd& file) {
  const off_t size = ::lseek(file.get(), 0, SEEK_END);
  std::string text(kOutputBytes, '\0');
  const off_t from = std::max<off_t>(0, size - static_cast<off_t>(kOutputBytes));
  const ssize_t n = ::pread(file.get(), text.data(), text.size(), from);
  text.resize(static_cast<size_t>(std::max<ssize_t>(0, n)));
  return text;
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return "it was killed by signal " + std::to_string(WTERMSIG(status));
  return "it ended with exit code " + std::to_string(WEXITSTATUS(status));
}

// A trial in progress.
class Trial {
 public:
  Trial(const TrialRequest& request, std::string folder, double measure_s, double start_s)
      : request_(request),
        folder_(std::move(folder)),
        segments_(folder_),
        watch_(request.settings.num_workers),
        measure_ns_(static_cast<int64_t>(measure_s * 1e9)),
        patience_ns_(static_cast<int64_t>(start_s * 1e9)) {
    begin_ns_ = moved_ns_ = monotonic_ns();
  }

  // Reads what came. False: enough, or it cannot go on.
  bool poll(int64_t now_ns) {
    read(now_ns);
    watch_.poll(segments_.rank_processes(), now_ns, first_ns_ > 0);
    why_ = watch_.full();
    if (!why_.empty()) return false;
    if (now_ns - moved_ns_ > patience_ns_) {
      why_ = "no step in " + std::to_string(patience_ns_ / kSecond) + " s";
      return false;
    }
    if (!enough(now_ns)) return true;
    if (done_ns_ == 0) done_ns_ = now_ns;
    return in_checkpoint() && now_ns - done_ns_ < kCheckpointNs;
  }

  void child_ended(int status, int64_t now_ns) {
    read(now_ns);
    segments_.finish(run_, now_ns, batch_);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    why_ = how_it_ended(status);
  }

  int steps() const {
    int least = run_.ranks.empty() ? 0 : INT32_MAX;
    for (const RankHistory& rank : run_.ranks)
      least = std::min(least, counted(rank, tuner::warmup_of(request_.settings)));
    return least;
  }
  double measured_s(int64_t now_ns) const {
    return first_ns_ == 0 ? 0 : static_cast<double>(now_ns - first_ns_) / 1e9;
  }

  TrialResult result() {
    TrialResult out;
    out.seconds = static_cast<double>(monotonic_ns() - begin_ns_) / 1e9;
    out.ranks = static_cast<int>(run_.ranks.size());
    const auto lines = read_file(folder_ + "/loaders.jsonl");
    auto processes = parse_loader_facts(lines ? *lines : "");
    // The rank that waits longest for data stands for all: the others wait for it.
    for (const RankHistory& rank : run_.ranks) {
      tuner::LoopRun figures_of_rank = figures(rank, request_);
      if (&rank == &run_.ranks.front() || mean(figures_of_rank.wait_ms) > mean(out.run.wait_ms))
        out.run = std::move(figures_of_rank);
    }
    if (!run_.ranks.empty()) {
      const RankHistory& first = run_.ranks.front();
      out.facts = first.facts;
      out.process = processes[first.pid];
      out.training = votes_.training(first.pid);
    }
    out.run.failed = why_;
    if (out.run.failed.empty() && static_cast<int>(out.run.step_ms.size()) < few())
      out.run.failed = too_few();
    if (!out.run.failed.empty()) out.run.step_ms = out.run.wait_ms = {};
    out.machine = watch_.machine();
    out.machine.local_ranks = std::max(1, out.ranks);
    out.seen = watch_.seen(out.machine.local_ranks);
    if (out.process.batch_bytes > 0) out.seen.batch_bytes = out.process.batch_bytes;
    out.seen.batch_tensors = std::max<int64_t>(1, out.process.batch_tensors);
    return out;
  }

 private:
  int few() const { return std::min(tuner::kLeastSteps, request_.steps); }

  void read(int64_t now_ns) {
    votes_.poll(folder_);
    segments_.poll(run_, now_ns, batch_);
    segments_.release(batch_.positions);
    batch_.clear();
    int64_t last = 0;
    for (const RankHistory& rank : run_.ranks) last += rank.steps + rank.failed_steps;
    if (last > seen_steps_) {
      seen_steps_ = last;
      moved_ns_ = now_ns;
    }
    if (first_ns_ == 0 && steps() > 0) first_ns_ = now_ns;
  }

  bool enough(int64_t now_ns) const {
    const int count = steps();
    return count >= request_.steps ||
           (count >= few() && first_ns_ > 0 && now_ns - first_ns_ >= measure_ns_);
  }

  bool in_checkpoint() const {
    for (const agent::RankNow& now : segments_.now())
      if (now.alive && now.phase == "checkpoint") return true;
    return false;
  }

  std::string too_few() const {
    if (run_.ranks.empty()) {
      const auto log = read_file(folder_ + "/boot.log");
      const auto reasons = unobserved(log ? *log : "", segments_.pids(), false, 0);
      return reasons.empty() ? "no training step was seen" : reasons.front();
    }
    return "only " + std::to_string(steps()) + " steps after " +
           std::to_string(tuner::warmup_of(request_.settings)) + " of warm-up";
  }

  const TrialRequest& request_;
  std::string folder_;
  agent::Segments segments_;
  agent::Batch batch_;
  LoaderVotes votes_;
  RunHistory run_;
  TrialWatch watch_;
  std::string why_;
  int64_t measure_ns_, patience_ns_;
  int64_t begin_ns_ = 0, first_ns_ = 0, done_ns_ = 0, moved_ns_ = 0;
  int64_t seen_steps_ = 0;
};

// The folder where the trial's processes meet; gone with the object.
class TrialFolder {
 public:
  static Result<TrialFolder> make() {
    const auto root = make_segment_root();
    if (!root) return root.error();
    TrialFolder out;
    out.path_ =
        *root + "/tune-" + std::to_string(::getpid()) + "-" + std::to_string(monotonic_ns());
    if (::mkdir(out.path_.c_str(), 0700) != 0)
      return Error{"cannot make " + out.path_ + ": " + errno_text(), "try: stepscope doctor"};
    out.lock_ = take_agent_lock(out.path_);
    return out;
  }
  TrialFolder(TrialFolder&& other) noexcept
      : path_(std::exchange(other.path_, "")), lock_(std::move(other.lock_)) {}
  ~TrialFolder() {
    if (!path_.empty()) remove_segment_folder(path_);
  }
  const std::string& path() const { return path_; }

 private:
  TrialFolder() = default;
  std::string path_;
  Fd lock_;
};

int asked_to_stop(Signals& signals) {
  for (const Signal& signal : signals.read())
    if (signal.number == SIGINT || signal.number == SIGTERM || signal.number == SIGHUP ||
        signal.number == SIGQUIT)
      return signal.number;
  return 0;
}

}  // namespace

TrialRunner::TrialRunner(Options options) : options_(std::move(options)) { become_reaper(); }

Result<TrialResult> TrialRunner::run(const TrialRequest& request, Signals& signals,
                                     const Progress& progress) {
  auto folder = TrialFolder::make();
  if (!folder) return folder.error();
  const Fd output = output_file(options_.environment);
  std::vector<std::pair<std::string, std::string>> more{{"STEPSCOPE_TUNE", "1"}};
  if (!request.loader.empty()) more.emplace_back("STEPSCOPE_LOADER", request.loader);
  const Started started =
      start_apart(options_.command,
                  observed_environment(folder->path(), "tune", options_.inject, Settings(),
                                       options_.environment, std::move(more)),
                  signals, output);
  if (started.error_number != 0)
    return exec_failure(options_.command[0], started.error_number).error;

  Trial trial(request, folder->path(), options_.measure_s, options_.start_s);
  int signal = 0;
  for (bool running = true; running;) {
    pollfd entry{signals.fd(), POLLIN, 0};
    ::poll(&entry, 1, static_cast<int>(kPollNs / kMs));
    signal = asked_to_stop(signals);
    const int64_t now = monotonic_ns();
    int status = 0;
    const bool ended = ::waitpid(started.pid, &status, WNOHANG) == started.pid;
    running = signal == 0 && !ended && trial.poll(now);
    if (ended) trial.child_ended(status, now);
    progress(trial.steps(), trial.measured_s(now));
  }
  end_descendants();
  TrialResult result = trial.result();
  result.signal = signal;
  result.output = end_of(output);
  return result;
}

}  // namespace stepscope::cli
