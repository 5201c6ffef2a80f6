#include "ring/writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "ring/reader.h"
#include "ring/segment_file.h"
#include "ring/test_folder.h"

namespace stepscope::ring {
namespace {

SegmentOptions options_in(const TestFolder& folder) {
  SegmentOptions options;
  options.folder = folder.path();
  options.role = wire::Role::kRank;
  options.segment_bytes = wire::kWorkerSegmentBytes;
  options.rank = 3;
  options.world_size = 8;
  options.run_id = "job \x1b[31m7";
  options.executable = "/usr/bin/python3";
  return options;
}

// Event n: whatever of it is read must fit together.
constexpr uint32_t kWhat = wire::pack(wire::EventCode::kFetchEnd);
bool write(Writer& writer, uint64_t n) { return writer.write(kWhat, ~n, static_cast<int64_t>(n)); }

TEST(Writer, MakesASegmentThatTheReaderKnows) {
  TestFolder folder;
  auto writer = Writer::create(options_in(folder));
  ASSERT_TRUE(writer) << writer.error().message;
  struct stat st;
  ASSERT_EQ(stat(folder.only_file().c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 07777, 0600u);
  EXPECT_EQ(st.st_size, 64 * 1024);
  EXPECT_GE(st.st_blocks * 512, st.st_size);  // allocated: no store can be SIGBUS

  auto reader = Reader::open(folder.only_file());
  ASSERT_TRUE(reader) << reader.error().message;
  const IdentityValue id = reader->identity();
  EXPECT_EQ(id.pid, getpid());
  EXPECT_EQ(id.pid_start_ticks, own_process().start_ticks);
  EXPECT_GT(id.pid_start_ticks, 0);
  EXPECT_EQ(folder.names()[0], segment_file_name(id.pid, id.nonce));
  EXPECT_EQ(id.role, wire::Role::kRank);
  EXPECT_EQ(id.rank, 3);
  EXPECT_EQ(id.local_rank, -1);
  EXPECT_EQ(id.world_size, 8);
  EXPECT_EQ(id.run_id, "job ?[31m7");
  EXPECT_FALSE(id.node.empty());
  EXPECT_GT(id.mono_ns, 0);
  EXPECT_FALSE(reader->oldest(0));
}

TEST(Writer, FullRingDropsAndCountsUntilReleasedAndThenSaysHowMany) {
  TestFolder folder;
  auto writer = Writer::create(options_in(folder));
  ASSERT_TRUE(writer);
  const uint64_t capacity = writer->capacity();
  for (uint64_t i = 0; i < capacity; ++i) ASSERT_TRUE(write(*writer, i));
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(write(*writer, 999));
  auto reader = Reader::open(folder.only_file());
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->dropped(), 5u);
  EXPECT_EQ(writer->written(), capacity);

  reader->release(3);
  for (uint64_t i = 0; i < 3; ++i) EXPECT_TRUE(write(*writer, capacity + i));
  EXPECT_FALSE(write(*writer, 999));
  std::vector<EventValue> events(capacity + 10);
  EXPECT_EQ(reader->drain(0, events).count, 0u);  // overwritten
  EXPECT_EQ(reader->oldest(0), 3u);
  const auto drained = reader->drain(3, events);
  ASSERT_EQ(drained.count, capacity);
  EXPECT_EQ(drained.next_index, capacity + 3);
  for (uint64_t i = 0; i < drained.count; ++i) {
    EXPECT_EQ(events[i].a, ~(i + 3));
    EXPECT_EQ(events[i].missing, i + 3 == capacity ? 5u : 0u);
  }
}

TEST(Writer, WrapsAroundManyTimesWithoutLoss) {
  TestFolder folder;
  auto writer = Writer::create(options_in(folder));
  ASSERT_TRUE(writer);
  auto reader = Reader::open(folder.only_file());
  ASSERT_TRUE(reader);
  std::array<EventValue, 100> out;
  uint64_t written = 0, next = 0;
  while (written < 7 * writer->capacity()) {
    for (int i = 0; i < 333; ++i, ++written) ASSERT_TRUE(write(*writer, written));
    for (Reader::Drained d{1, next, 0}; d.count > 0;) {
      d = reader->drain(next, out);
      ASSERT_EQ(d.lost, 0u);
      for (size_t i = 0; i < d.count; ++i) {
        ASSERT_EQ(out[i].index, next + i);
        ASSERT_EQ(out[i].a, ~(next + i));
      }
      next = d.next_index;
    }
    ASSERT_EQ(next, written);
    reader->release(next);
  }
}

TEST(Writer, TailThatCannotBeTrueCountsAsFull) {
  alignas(64) static std::array<char, wire::kRingOffset + 4 * sizeof(wire::Event)> memory;
  auto writer = Writer::over(memory.data(), memory.size(), {});
  ASSERT_TRUE(writer);
  ASSERT_EQ(writer->capacity(), 4u);
  for (uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(write(*writer, i));
  wire::ReaderLine& line = writer->head().reader;
  const auto set = [&](uint64_t tail, uint64_t check) {
    line.tail.store(tail);
    line.tail_check.store(check);
  };
  set(uint64_t{1} << 40, ~(uint64_t{1} << 40));  // far ahead of what was written
  EXPECT_FALSE(write(*writer, 9));
  set(~uint64_t{0}, 0);
  EXPECT_FALSE(write(*writer, 9));
  set(2, ~uint64_t{3});  // half written
  EXPECT_FALSE(write(*writer, 9));
  set(2, ~uint64_t{2});
  EXPECT_TRUE(write(*writer, 4));
  set(1, ~uint64_t{1});  // back
  EXPECT_TRUE(write(*writer, 5));
  EXPECT_FALSE(write(*writer, 6));
}

TEST(Writer, WithoutASegmentDropsSilently) {
  Writer writer;
  EXPECT_FALSE(write(writer, 0));
}

// The protocol itself, over memory that ThreadSanitizer sees (it does not see pread): what the test
// reader below does is what Reader does, with loads instead of reads.
class SharedRing : public ::testing::Test {
 protected:
  static constexpr size_t kCapacity = 61;
  static constexpr size_t kBytes = wire::kRingOffset + kCapacity * sizeof(wire::Event);
  struct alignas(64) Memory {
    char bytes[kBytes];
  };
  void SetUp() override {
    auto made = Writer::over(memory_->bytes, kBytes, {});
    ASSERT_TRUE(made);
    writer_ = *made;
  }
  // Calls seen(event) for each that is there, and frees them all.
  template <typename F>
  void drain(F&& seen) {
    auto* ring = reinterpret_cast<wire::Event*>(memory_->bytes + wire::kRingOffset);
    while (ring[next_ % kCapacity].seq.load(std::memory_order_acquire) == next_ + 1)
      seen(ring[next_++ % kCapacity]);
    wire::ReaderLine& line = writer_.head().reader;
    line.tail_check.store(~next_, std::memory_order_relaxed);
    line.tail.store(next_, std::memory_order_release);
  }

  std::unique_ptr<Memory> memory_ = std::make_unique<Memory>();
  Writer writer_;
  uint64_t next_ = 0;
};

TEST_F(SharedRing, ThreadAgainstAReaderOfTheSameMemory) {
  constexpr uint64_t kEvents = 60'000;
  std::atomic<bool> running{true};
  uint64_t written = 0;
  std::thread thread([&] {
    for (uint64_t i = 0; i < kEvents; ++i) {
      if (write(writer_, i)) ++written;
      // so that the reader comes in between, also on a busy machine
      else
        std::this_thread::yield();
    }
    running.store(false);
  });
  uint64_t seen = 0, missing = 0;
  int64_t last = -1;
  const auto check = [&](const wire::Event& event) {
    ASSERT_EQ(static_cast<uint64_t>(event.t_ns.load()), ~event.a.load());
    ASSERT_EQ(event.t_ns.load(), last + 1 + event.missing.load());
    last = event.t_ns.load();
    missing += event.missing.load();
    ++seen;
  };
  while (running.load()) drain(check);
  thread.join();
  drain(check);
  EXPECT_EQ(seen, written);
  EXPECT_EQ(seen + writer_.head().writer.dropped.load(), kEvents);
  EXPECT_LE(missing, writer_.head().writer.dropped.load());
}

// A thread that takes over while the other is still inside write(): events may be lost or mixed, but
// the ring goes on and nothing is written outside it.
TEST_F(SharedRing, TwoThreadsThatMeetLoseEventsAndNothingElse) {
  std::atomic<int> running{2};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      for (uint64_t i = 0; i < 30'000; ++i) {
        if (!write(writer_, i)) std::this_thread::yield();
      }
      running.fetch_sub(1);
    });
  while (running.load() > 0) drain([](const wire::Event&) {});
  for (auto& thread : threads) thread.join();
  for (size_t at = 0; at < sizeof(wire::NameTable); ++at)
    ASSERT_EQ(memory_->bytes[wire::kNameTableOffset + at], 0);
  // One of them alone goes on: the reader finds what it writes, at the latest after a lap.
  drain([](const wire::Event&) {});
  std::vector<uint64_t> seen;
  for (uint64_t i = 0; i < 4 * kCapacity; ++i) {
    write(writer_, i);
    drain([&](const wire::Event& event) { seen.push_back(~event.a.load()); });
  }
  ASSERT_GE(seen.size(), 2 * kCapacity);
  EXPECT_EQ(seen.back(), 4 * kCapacity - 1);
}

TEST(Writer, ThreadAgainstTheRealReader) {
  TestFolder folder;
  auto made = Writer::create(options_in(folder));
  ASSERT_TRUE(made);
  Writer writer = *made;
  auto reader = Reader::open(folder.only_file());
  ASSERT_TRUE(reader);
  std::atomic<bool> running{true};
  std::thread thread([&] {
    for (uint64_t i = 0; i < 60'000; ++i) write(writer, i);
    running.store(false);
  });
  std::array<EventValue, 500> out;
  uint64_t next = 0, count = 0;
  const auto drain = [&] {
    for (Reader::Drained d{1, next, 0}; d.count > 0;) {
      d = reader->drain(next, out);
      ASSERT_EQ(d.lost, 0u);
      for (size_t i = 0; i < d.count; ++i) {
        ASSERT_EQ(out[i].index, next + i);
        ASSERT_EQ(static_cast<uint64_t>(out[i].t_ns), ~out[i].a);
      }
      count += d.count;
      next = d.next_index;
      reader->release(next);
    }
  };
  while (running.load()) drain();
  thread.join();
  drain();
  EXPECT_EQ(count, writer.written());
  EXPECT_EQ(count + reader->dropped(), 60'000u);
}

// --- no room

TEST(Segment, ShareOfFreeSpaceIsKept) {
  TestFolder folder;
  SegmentOptions options = options_in(folder);
  options.shm_share = 1e-9;
  const auto writer = Writer::create(options);
  ASSERT_FALSE(writer);
  EXPECT_NE(writer.error().message.find("no room"), std::string::npos) << writer.error().message;
  EXPECT_NE(writer.error().hint.find("shm_share"), std::string::npos);
  EXPECT_TRUE(folder.names().empty());
}

TEST(Segment, FolderThatIsNoTmpfsIsRefused) {
  SegmentOptions options;
  options.folder = "/proc";
  EXPECT_NE(Writer::create(options).error().message.find("not on a tmpfs"), std::string::npos);
  options.folder = "/dev/shm/stepscope-no-such-folder";
  EXPECT_NE(Writer::create(options).error().message.find("No such file"), std::string::npos);
}

TEST(Segment, SizeThatHoldsNoEventIsRefused) {
  TestFolder folder;
  SegmentOptions options = options_in(folder);
  options.segment_bytes = 4096;
  const auto writer = Writer::create(options);
  ASSERT_FALSE(writer);
  EXPECT_TRUE(folder.names().empty());
}

// In a child each: limits and signals are a process's.
TEST(Segment, FileSizeLimitIsAnErrorAndNotASignal) {
  TestFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    // What a sanitizer says at the end may go to a file that is longer than the limit.
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, 1);
    dup2(nowhere, 2);
    const rlimit limit{4096, 4096};
    setrlimit(RLIMIT_FSIZE, &limit);
    _exit(Writer::create(options_in(folder)) ? 1 : 42);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 42) << status;
  EXPECT_TRUE(folder.names().empty());
}

}  // namespace
}  // namespace stepscope::ring
