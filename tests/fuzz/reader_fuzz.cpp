// The segment reader, and what the agent makes of its events, against hostile bytes. An input is a list of commands: it spoils a real
// segment, cuts or lengthens its file, and reads, in any order.
//
//   0 offset16 length8 bytes    overwrite          1 offset16 n8      put kWords[n]
//   2 size16                    resize the file    3                  open (again)
//   4 from8 room8               drain              5 tail8            release
//   6                           all else           other              ignored
// from and tail are numbers of kWords. Whatever comes back must keep the reader's promises
// (check_*).
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/fold.h"
#include "agent/loader_fold.h"
#include "agent/loader_join.h"
#include "agent/timeline.h"
#include "model/phase.h"
#include "ring/reader.h"
#include "ring/writer.h"

namespace {

using namespace stepscope;

constexpr size_t kCapacity = 64;
constexpr size_t kBytes = wire::kRingOffset + kCapacity * sizeof(wire::Event);
constexpr uint64_t kHead = 150;  // wrapped twice
constexpr uint64_t kOne = 1;
constexpr std::array<uint64_t, 24> kWords = {0,
                                             1,
                                             2,
                                             kCapacity - 1,
                                             kCapacity,
                                             kCapacity + 1,
                                             kHead - kCapacity - 1,
                                             kHead - kCapacity,
                                             kHead - kCapacity + 1,
                                             kHead - 1,
                                             kHead,
                                             kHead + 1,
                                             kHead + kCapacity,
                                             0x7fffffff,
                                             0x80000000,
                                             0xffffffff,
                                             kOne << 32,
                                             kOne << 56,
                                             (kOne << 63) - 1,
                                             kOne << 63,
                                             ~uint64_t{0} - kCapacity,
                                             ~uint64_t{0} - 1,
                                             ~uint64_t{0},
                                             kBytes};

void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

struct alignas(64) Image {
  char bytes[kBytes];
};

std::unique_ptr<Image> good_segment() {
  auto image = std::make_unique<Image>();
  std::memset(image->bytes, 0, kBytes);
  auto writer = ring::Writer::over(image->bytes, kBytes,
                                   {.run_id = "fuzz", .executable = "/usr/bin/python3"});
  wire::SegmentHead& head = writer->head();
  for (uint64_t i = 0; i < kHead; ++i) {
    head.reader.tail_check.store(~i);
    head.reader.tail.store(i);
    constexpr auto kCodes = static_cast<uint64_t>(wire::EventCode::kLast);
    const auto code = static_cast<wire::EventCode>(1 + i * 7 % kCodes);
    writer->write(wire::pack(code, 1 + i % 4, static_cast<uint8_t>(i)), i % 5,
                  static_cast<int64_t>(i * 10));
  }
  head.reader.tail_check.store(~(kHead - kCapacity + 10));
  head.reader.tail.store(kHead - kCapacity + 10);
  std::strcpy(head.names.names[0], "tokenise");
  head.names.count.store(1);
  return image;
}

void check_text(const std::string& text, size_t longest) {
  check(text.size() <= longest, "text within its field");
  for (const char c : text)
    check(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f, "text printable");
}

void check_rest(ring::Reader& reader) {
  const ring::IdentityValue id = reader.identity();
  check(id.world_size >= 1 && id.rank >= -1 && id.rank < id.world_size && id.attempt >= 0,
        "ranks in range");
  check(id.role <= wire::Role::kWorker, "role known");
  check_text(id.node, 64);
  check_text(id.run_id, 128);
  check_text(id.python_version, 32);
  check_text(id.torch_version, 32);
  check_text(id.executable, 256);
  for (int phase = 0; phase < 256; ++phase)
    check_text(reader.name(static_cast<uint8_t>(phase)), wire::kNameBytes);
  for (uint32_t number = 0; number <= wire::kMaxGroups + 1; ++number)
    if (const auto group = reader.group(number))
      check(group->id != 0 && group->members >= 2, "a group that can be waited in");
  reader.dropped();
  reader.cost_ns();
  reader.cost_calls();
  reader.beat(1);
  reader.control(wire::Control::kOn);
  const std::optional<uint64_t> oldest = reader.oldest(3);
  check(!oldest || *oldest >= 3, "oldest");
}

void check_steps(const agent::Folded& folded) {
  for (const StepSample& step : folded.steps) {
    check(step.end_ns >= step.begin_ns, "a step ends after it begins");
    int64_t sum_ns = 0;
    for (const int64_t ns : step.phase_ns) {
      check(ns >= 0, "a phase is not negative");
      sum_ns += ns;
    }
    for (const auto& [name, ns] : step.user_phase_ns) sum_ns += ns;
    check(sum_ns == step.end_ns - step.begin_ns, "phases add up to the step");
  }
}

// All that the agent does with what it read.
void check_meaning(const std::vector<ring::EventValue>& events) {
  agent::Timeline timeline;
  agent::Fold fold(0, {.name_of = [](uint8_t) { return std::string("mine"); },
                       .group_of = [](uint32_t) { return ring::GroupValue{7, 2}; }});
  agent::Folded folded;
  std::vector<agent::Record> records;
  for (const ring::EventValue& event : events) {
    records.clear();
    timeline.push(event, records);
    for (const agent::Record& record : records) fold.push(record, folded);
    check(timeline.now().since_ns >= 0, "now");
  }
  records.clear();
  timeline.finish(events.empty() ? 0 : events.back().index + 1, records);
  for (const agent::Record& record : records) fold.push(record, folded);
  fold.finish(timeline.in_progress(), folded);
  check_steps(folded);
}

// The same bytes as of a segment of loading.
void check_loading(const std::vector<ring::EventValue>& events) {
  agent::LoaderFold fold;
  agent::LoaderJoin join;
  RunHistory run;
  for (const ring::EventValue& event : events)
    fold.push(event, [](uint8_t number) { return "name " + std::to_string(number); });
  check(fold.delta().loaders.size() <= RunHistory::kMaxLoaders, "loaders are bounded");
  join.add(fold, 1, 0, run);
  for (const LoaderHistory& loader : run.loaders) {
    check(loader.by_worker.size() <= LoaderHistory::kMaxWorkers, "workers are bounded");
    check(loader.waited_ns >= 0 && loader.batches() >= 0, "sums stop");
    const std::string text = to_text(loader);
    const auto back = loader_from_text(text);
    check(back && to_text(*back) == text, "a loader can be stored");
  }
}

void check_drain(const ring::Reader& reader, uint64_t from, size_t room) {
  std::vector<ring::EventValue> out(room);
  const ring::Reader::Drained d = reader.drain(from, out);
  check(d.count <= room, "no more than there is room for");
  check(d.count + d.lost <= reader.capacity() + 256, "bounded by what the file can hold");
  out.resize(d.count);
  uint64_t last = from;
  for (const ring::EventValue& e : out) {
    check(e.index - from < d.next_index - from && e.index - from >= last - from, "in order");
    last = e.index + 1;
    check(e.t_ns >= 0, "time");
    check(e.code > wire::EventCode::kNone && e.code <= wire::EventCode::kLast, "code");
    check((e.flags & ~wire::kEveryEventFlag) == 0, "flags");
  }
  check_meaning(out);
  check_loading(out);
}

// The input, byte by byte; zeros after its end.
struct Input {
  const uint8_t* at;
  size_t left;
  uint8_t byte() {
    if (left == 0) return 0;
    --left;
    return *at++;
  }
  size_t word() { return byte() | static_cast<size_t>(byte()) << 8; }
  uint64_t number() { return kWords[byte() % kWords.size()]; }
};

void put(int fd, size_t offset, const void* bytes, size_t size) {
  [[maybe_unused]] const ssize_t n = pwrite(fd, bytes, size, static_cast<off_t>(offset));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::unique_ptr<Image> good = good_segment();
  static const int fd = memfd_create("segment", MFD_CLOEXEC);
  if (ftruncate(fd, 0) != 0) std::abort();
  put(fd, 0, good->bytes, kBytes);
  std::optional<ring::Reader> reader;
  Input in{data, size};
  for (int command = 0; command < 64 && in.left > 0; ++command) {
    switch (in.byte()) {
      case 0: {
        const size_t offset = in.word();
        const size_t length = std::min<size_t>(in.byte(), in.left);
        put(fd, offset, in.at, length);
        in.at += length;
        in.left -= length;
        break;
      }
      case 1: {
        const size_t offset = in.word();
        const uint64_t value = in.number();
        put(fd, offset, &value, sizeof(value));
        break;
      }
      case 2:
        if (ftruncate(fd, static_cast<off_t>(in.word())) != 0) std::abort();
        break;
      case 3: {
        auto opened = ring::Reader::from_fd(dup(fd), "segment");
        if (opened)
          reader.emplace(std::move(*opened));
        else
          check(!opened.error().message.empty(), "an error says what failed");
        break;
      }
      case 4: {
        const uint64_t from = in.number();
        const size_t room = in.byte();
        if (reader) check_drain(*reader, from, room);
        break;
      }
      case 5: {
        const uint64_t tail = in.number();
        if (reader) reader->release(tail);
        break;
      }
      case 6:
        if (reader) check_rest(*reader);
        break;
      default:
        break;
    }
  }
  return 0;
}
