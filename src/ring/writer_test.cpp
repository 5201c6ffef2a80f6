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

RecordFields numbered(uint64_t n) {
  return {.t0_ns = static_cast<int64_t>(n),
          .t1_ns = static_cast<int64_t>(n) + 1,
          .step = static_cast<uint32_t>(n),
          .kind = wire::RecordKind::kSpan,
          .phase = 2,
          .flags = 0,
          .a = n,
          .b = ~n};
}

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
  EXPECT_EQ(reader->head(), 0u);
}

TEST(Writer, FullRingDropsAndCountsUntilReleased) {
  TestFolder folder;
  auto writer = Writer::create(options_in(folder));
  ASSERT_TRUE(writer);
  const uint64_t capacity = writer->capacity();
  for (uint64_t i = 0; i < capacity; ++i) ASSERT_TRUE(writer->write(numbered(i)));
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(writer->write(numbered(999)));
  auto reader = Reader::open(folder.only_file());
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->dropped(), 5u);
  EXPECT_EQ(reader->head(), capacity);

  reader->release(3);
  for (uint64_t i = 0; i < 3; ++i) EXPECT_TRUE(writer->write(numbered(capacity + i)));
  EXPECT_FALSE(writer->write(numbered(999)));
  std::vector<RecordValue> records(capacity + 10);
  const auto drained = reader->drain(0, records, false);
  ASSERT_EQ(drained.count, capacity);
  EXPECT_EQ(drained.next_index, capacity + 3);
  for (uint64_t i = 0; i < drained.count; ++i) EXPECT_EQ(records[i].a, i + 3);
}

TEST(Writer, WrapsAroundManyTimesWithoutLoss) {
  TestFolder folder;
  auto writer = Writer::create(options_in(folder));
  ASSERT_TRUE(writer);
  auto reader = Reader::open(folder.only_file());
  ASSERT_TRUE(reader);
  std::array<RecordValue, 100> out;
  uint64_t written = 0, next = 0;
  while (written < 7 * writer->capacity()) {
    for (int i = 0; i < 333; ++i, ++written) ASSERT_TRUE(writer->write(numbered(written)));
    for (Reader::Drained d{1, next, 0}; d.count > 0;) {
      d = reader->drain(next, out, false);
      ASSERT_EQ(d.lost, 0u);
      for (size_t i = 0; i < d.count; ++i) {
        ASSERT_EQ(out[i].index, next + i);
        ASSERT_EQ(out[i].a, next + i);
        ASSERT_EQ(out[i].b, ~(next + i));
      }
      next = d.next_index;
    }
    ASSERT_EQ(next, written);
    reader->release(next);
  }
}

TEST(Writer, TailThatCannotBeTrueCountsAsFull) {
  alignas(64) static std::array<char, wire::kRingOffset + 4 * sizeof(wire::Record)> memory;
  auto writer = Writer::over(memory.data(), memory.size(), {});
  ASSERT_TRUE(writer);
  ASSERT_EQ(writer->capacity(), 4u);
  for (uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(writer->write(numbered(i)));
  wire::ReaderLine& line = writer->head().reader;
  const auto set = [&](uint64_t tail, uint64_t check) {
    line.tail.store(tail);
    line.tail_check.store(check);
  };
  set(5, ~uint64_t{5});  // ahead of head
  EXPECT_FALSE(writer->write(numbered(9)));
  set(~uint64_t{0}, 0);
  EXPECT_FALSE(writer->write(numbered(9)));
  set(2, ~uint64_t{3});  // half written
  EXPECT_FALSE(writer->write(numbered(9)));
  set(2, ~uint64_t{2});
  EXPECT_TRUE(writer->write(numbered(4)));
  set(1, ~uint64_t{1});  // back
  EXPECT_TRUE(writer->write(numbered(5)));
  EXPECT_FALSE(writer->write(numbered(6)));
}

TEST(Writer, WithoutASegmentDropsSilently) {
  Writer writer;
  EXPECT_FALSE(writer.write(numbered(0)));
}

// The protocol itself, over memory that ThreadSanitizer sees (it does not see pread): what the test
// reader below does is what Reader does, with loads instead of reads.
TEST(Writer, ThreadsAgainstAReaderOfTheSameMemory) {
  constexpr size_t kCapacity = 61;
  constexpr int kThreads = 3;
  constexpr uint64_t kEach = 20'000;
  constexpr size_t kBytes = wire::kRingOffset + kCapacity * sizeof(wire::Record);
  struct alignas(64) Memory {
    char bytes[kBytes];
  };
  const auto memory = std::make_unique<Memory>();
  auto made = Writer::over(memory->bytes, kBytes, {});
  ASSERT_TRUE(made);
  Writer writer = *made;
  std::atomic<int> running{kThreads};
  std::vector<std::thread> threads;
  std::array<std::atomic<uint64_t>, kThreads> written{};
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t, writer]() mutable {
      uint64_t mine = 0;
      for (uint64_t i = 0; i < kEach; ++i) {
        RecordFields r = numbered(i);
        r.a = static_cast<uint64_t>(t);
        if (writer.write(r)) ++mine;
        // so that the reader comes in between, also on a busy machine
        else
          std::this_thread::yield();
      }
      written[t].store(mine);
      running.fetch_sub(1);
    });
  auto* ring = reinterpret_cast<wire::Record*>(memory->bytes + wire::kRingOffset);
  std::array<uint64_t, kThreads> seen{};
  std::array<int64_t, kThreads> last{};
  last.fill(-1);
  uint64_t next = 0;
  const auto drain = [&] {
    while (ring[next % kCapacity].seq.load(std::memory_order_acquire) == next + 1) {
      const wire::Record& r = ring[next % kCapacity];
      ASSERT_LT(r.a, static_cast<uint64_t>(kThreads));
      ASSERT_EQ(static_cast<uint64_t>(r.t0_ns), ~r.b);
      ASSERT_EQ(r.t1_ns, r.t0_ns + 1);
      ASSERT_GT(r.t0_ns, last[r.a]);  // each thread's records in its own order
      last[r.a] = r.t0_ns;
      ++seen[r.a];
      ++next;
    }
    writer.head().reader.tail_check.store(~next, std::memory_order_relaxed);
    writer.head().reader.tail.store(next, std::memory_order_release);
  };
  while (running.load() > 0) drain();
  for (auto& thread : threads) thread.join();
  drain();
  uint64_t total = 0;
  for (int t = 0; t < kThreads; ++t) {
    EXPECT_EQ(seen[t], written[t].load());
    total += seen[t];
  }
  EXPECT_EQ(total + writer.head().writer.dropped.load(), kThreads * kEach);
}

TEST(Writer, ThreadsAgainstTheRealReader) {
  TestFolder folder;
  auto made = Writer::create(options_in(folder));
  ASSERT_TRUE(made);
  Writer writer = *made;
  auto reader = Reader::open(folder.only_file());
  ASSERT_TRUE(reader);
  std::atomic<int> running{2};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 2; ++t)
    threads.emplace_back([&, t, writer]() mutable {
      for (uint64_t i = 0; i < 30'000; ++i) writer.write(numbered(i * 2 + t));
      running.fetch_sub(1);
    });
  std::array<RecordValue, 500> out;
  uint64_t next = 0, count = 0;
  const auto drain = [&] {
    for (Reader::Drained d{1, next, 0}; d.count > 0;) {
      d = reader->drain(next, out, false);
      ASSERT_EQ(d.lost, 0u);
      for (size_t i = 0; i < d.count; ++i) {
        ASSERT_EQ(out[i].index, next + i);
        ASSERT_EQ(out[i].b, ~out[i].a);
        ASSERT_EQ(static_cast<uint64_t>(out[i].t0_ns), out[i].a);
      }
      count += d.count;
      next = d.next_index;
      reader->release(next);
    }
  };
  while (running.load() > 0) drain();
  for (auto& thread : threads) thread.join();
  drain();
  EXPECT_EQ(count, reader->head());
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

TEST(Segment, SizeThatHoldsNoRecordIsRefused) {
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
