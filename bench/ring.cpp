// One step's events, with room in the ring and with none: a stalled agent must cost the step nothing. In blocks, in
// turn, in one process; prints the quickest tenth of each, their ratio, and the drops that were counted.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/clock.h"
#include "recorder/recorder.h"
#include "ring/reader.h"

namespace {

using stepscope::monotonic_ns;
using stepscope::recorder::Recorder;

constexpr int kBlocks = 400;
constexpr int kStepsPerBlock = 200;

void one_step(Recorder& recorder) {
  recorder.fetch_begin(1, true);
  recorder.fetch_end(32);
  recorder.zero_grad();
  recorder.forward_begin(true, true);
  recorder.forward_end(false);
  recorder.backward_begin(false);
  recorder.backward_end(false, false);
  recorder.optimizer_begin(1);
  recorder.optimizer_end(1);
}

double block_ns(Recorder& recorder) {
  const int64_t begin_ns = monotonic_ns();
  for (int i = 0; i < kStepsPerBlock; ++i) one_step(recorder);
  return static_cast<double>(monotonic_ns() - begin_ns) / kStepsPerBlock;
}

double quick(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 10];
}

// The number of the first event that is not there yet.
uint64_t drained(const stepscope::ring::Reader& reader, uint64_t next) {
  std::vector<stepscope::ring::EventValue> events(4096);
  for (bool more = true; more;) {
    const auto done = reader.drain(next, events);
    more = done.next_index != next;
    next = done.next_index;
  }
  return next;
}

int measure(const std::string& folder) {
  stepscope::recorder::OpenOptions options;
  options.folder = folder;
  options.shm_share = 1;
  Recorder& recorder = Recorder::instance();
  const auto opened = recorder.open(options);
  if (!opened) {
    std::fprintf(stderr, "bench: %s\n", opened.error().message.c_str());
    return 1;
  }
  const std::string path = std::filesystem::directory_iterator(folder)->path().string();
  auto reader = stepscope::ring::Reader::open(path);
  if (!reader) return 1;
  std::vector<double> with_room, full;
  uint64_t next = 0;
  for (int block = 0; block < kBlocks; ++block) {
    next = drained(*reader, next);
    reader->release(next);
    with_room.push_back(block_ns(recorder));
    for (const uint64_t before = reader->dropped(); reader->dropped() == before;)
      one_step(recorder);
    full.push_back(block_ns(recorder));
  }
  const double room_ns = quick(with_room), full_ns = quick(full);
  std::printf(
      "{\"step_ns\": %.1f, \"step_full_ring_ns\": %.1f, \"ratio\": %.3f, \"events_dropped\": "
      "%llu}\n",
      room_ns, full_ns, full_ns / room_ns, static_cast<unsigned long long>(reader->dropped()));
  return 0;
}

}  // namespace

int main() {
  char folder[] = "/dev/shm/stepscope-bench-XXXXXX";
  if (mkdtemp(folder) == nullptr) return 1;
  const int code = measure(folder);
  std::filesystem::remove_all(folder);
  return code;
}
