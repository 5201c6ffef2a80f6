// A run of many ranks and an hour of steps, as a hub holds it in memory: how long each view takes, what the history
// weighs, how long its run.db takes to be read. `bench_views [--ranks 4096] [--steps 3600] [--folder DIR] [--views no]`
// prints one line a figure: name, value. With --folder the run is left there, ended, for commands to open.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "engine/engine.h"
#include "report/report.h"
#include "report/summary_bytes.h"
#include "report/views.h"
#include "simulator/simulator.h"
#include "store/store.h"

namespace {

using namespace stepscope;

constexpr int kTimes = 7;
constexpr int64_t kLookEvery = 500;  // steps between two looks at who is late

double ms_since(int64_t begin_ns) { return static_cast<double>(monotonic_ns() - begin_ns) / 1e6; }

// Of this thread, on a processor: what a machine without other work would need.
int64_t worked_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

double resident_mb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return std::atof(line.c_str() + 6) / 1024;
  return 0;
}

// A step a second; a checkpoint every ten minutes, a memory sample every thirty seconds.
RunHistory make(int32_t ranks, int64_t steps) {
  simulator::Options options;
  options.ranks = ranks;
  options.steps = steps;
  for (double* ms : {&options.input_ms, &options.forward_ms, &options.backward_ms,
                     &options.optimizer_ms, &options.other_ms, &options.transfer_ms})
    *ms *= 10;
  if (const auto fault = simulator::parse_fault("rank=1 phase=forward add=200ms from=100"))
    options.faults.push_back(*fault);
  simulator::Simulator simulator(options);
  RunHistory run = simulator.start();
  run.name = "views";
  run.id = "bench-views";
  run.command = {"python", "train.py"};
  run.started_wall_ns = wall_ns();
  for (int64_t step = 0; simulator.step(run); ++step) {
    if (step % kLookEvery == kLookEvery - 1) {
      run.comparison = engine::compare_ranks(run);
      for (RankHistory& rank : run.ranks) rank.keep_share(run.ranks.size());
    }
    for (RankHistory& rank : run.ranks) {
      const StepSample& newest = rank.raw.back();
      if (step % 600 == 599)
        rank.add(Occurrence{rank.rank, OccurrenceKind::kCheckpoint, newest.step, newest.begin_ns,
                            newest.begin_ns + 50'000'000});
      if (step % 30 == 0)
        rank.add(MemorySample{.mono_ns = newest.end_ns,
                              .step = newest.step,
                              .rss_bytes = (int64_t{4} << 30) + rank.rank * 4096,
                              .anon_bytes = int64_t{4} << 30,
                              .worker_pss_bytes = int64_t{1} << 30,
                              .device_allocated_bytes = {},
                              .cpu_cores = 1.5,
                              .cpu_wait_share = 0.01,
                              .disk_wait_share = {},
                              .cpu_steal_share = 0.0,
                              .minor_faults_per_s = 900.0,
                              .major_faults_per_s = 0.0});
    }
  }
  run.comparison = engine::compare_ranks(run);
  for (RankHistory& rank : run.ranks) rank.keep_share(run.ranks.size());
  run.live = false;
  run.exit_code = 0;
  return run;
}

void print_views(const RunHistory& run, const std::vector<Finding>& findings) {
  const std::string last = std::to_string(run.ranks.back().rank);
  const std::vector<std::pair<std::string, report::ViewQuery>> queries = {
      {"series of the job", {"series", {}}},
      {"series of a rank", {"series", {{"rank", last}}}},
      {"series, zoomed", {"series", {{"from", "3000"}, {"to", "3100"}}}},
      {"ranks, worst first", {"ranks", {}}},
      {"ranks by a phase", {"ranks", {{"sort", "forward"}, {"offset", "1000"}}}},
      {"ranks by node", {"ranks", {{"by", "node"}}}},
      {"heatmap of lateness", {"heatmap", {{"value", "late"}}}},
      {"heatmap of lateness, newest", {"heatmap", {{"value", "late"}, {"from", "3480"}}}},
      {"heatmap of a phase",
       {"heatmap", {{"value", "forward"}, {"rows", "256"}, {"columns", "400"}}}},
      {"heatmap by node", {"heatmap", {{"value", "total"}, {"by", "node"}}}},
      {"resources", {"resources", {}}},
      {"events", {"events", {}}},
  };
  for (const auto& [name, query] : queries) {
    std::vector<double> took, worked;
    size_t bytes = 0;
    for (int i = 0; i < kTimes; ++i) {
      const int64_t begin = monotonic_ns(), begin_worked = worked_ns();
      const auto text = report::view(run, findings, query);
      worked.push_back(static_cast<double>(worked_ns() - begin_worked) / 1e6);
      took.push_back(ms_since(begin));
      if (!text) std::printf("%s: %s\n", name.c_str(), text.error().message.c_str());
      if (text) bytes = text->size();
    }
    std::sort(took.begin(), took.end());
    std::sort(worked.begin(), worked.end());
    std::printf("view\t%s\t%.1f\t%.1f\t%zu\n", name.c_str(), took[kTimes / 2], worked[kTimes / 2],
                bytes);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  int32_t ranks = 4096;
  int64_t steps = 3600;
  std::string folder;
  bool views = true;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--ranks") == 0) ranks = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--steps") == 0) steps = std::atoll(argv[i + 1]);
    if (std::strcmp(argv[i], "--folder") == 0) folder = argv[i + 1];
    if (std::strcmp(argv[i], "--views") == 0) views = std::strcmp(argv[i + 1], "no") != 0;
  }
  const double before_mb = resident_mb();
  int64_t begin = monotonic_ns();
  RunHistory run = make(ranks, steps);
  std::printf("figure\tmade_s\t%.1f\n", ms_since(begin) / 1e3);
  size_t raw = 0, blocks = 0;
  for (const RankHistory& rank : run.ranks) {
    raw += rank.raw.size();
    for (const auto& level : rank.rollups) blocks += level.size();
  }
  std::printf("figure\traw_steps\t%zu\nfigure\trollups\t%zu\nfigure\thistory_mb\t%.0f\n", raw,
              blocks, resident_mb() - before_mb);
  begin = monotonic_ns();
  const std::vector<Finding> findings = engine::diagnose(run);
  std::printf("figure\tdiagnose_ms\t%.0f\n", ms_since(begin));
  begin = monotonic_ns();
  const report::Summary summary = report::summarize(run, findings);
  std::printf("figure\tsummarize_ms\t%.0f\n", ms_since(begin));
  if (views) print_views(run, findings);
  if (folder.empty()) return 0;

  run.folder = folder;
  auto store = store::Store::create(folder);
  if (!store || !store->commit(run, {}) ||
      !store->finish(run, findings, report::to_bytes(summary))) {
    std::fprintf(stderr, "cannot write %s\n", folder.c_str());
    return 1;
  }
  (void)write_file(folder + "/summary.json", report::to_json(summary) + "\n", 0644, true);
  (void)write_file(folder + "/summary.txt", report::card(summary, {}), 0644, true);
  return 0;
}
