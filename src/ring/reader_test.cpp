#include "ring/reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <vector>

#include "ring/test_folder.h"
#include "ring/writer.h"

namespace stepscope::ring {
namespace {

// A segment whose bytes a test can spoil.
class Hostile : public ::testing::Test {
 protected:
  void SetUp() override {
    SegmentOptions options;
    options.folder = folder_.path();
    options.segment_bytes = wire::kWorkerSegmentBytes;
    auto writer = Writer::create(options);
    ASSERT_TRUE(writer) << writer.error().message;
    writer_ = *writer;
    path_ = folder_.only_file();
  }
  void fill(int records) {
    for (int i = 0; i < records; ++i)
      writer_.write({.t0_ns = i,
                     .t1_ns = i + 1,
                     .step = 0,
                     .kind = wire::RecordKind::kSpan,
                     .phase = 0,
                     .flags = 0});
  }
  wire::Record& record(uint64_t i) {
    return reinterpret_cast<wire::Record*>(reinterpret_cast<char*>(&writer_.head()) +
                                           wire::kRingOffset)[i % writer_.capacity()];
  }
  std::string refusal() {
    const auto reader = Reader::open(path_);
    return reader ? "" : reader.error().message;
  }
  Reader reader() {
    auto reader = Reader::open(path_);
    EXPECT_TRUE(reader) << reader.error().message;
    return std::move(*reader);
  }

  TestFolder folder_;
  std::string path_;
  Writer writer_;
  std::vector<RecordValue> out_ = std::vector<RecordValue>(4096);
};

TEST_F(Hostile, HeadersThatDoNotFitAreRefused) {
  wire::Identity& id = writer_.head().identity;
  EXPECT_EQ(refusal(), "");
  id.magic ^= 1;
  EXPECT_NE(refusal().find("does not begin like a segment"), std::string::npos);
  id.magic ^= 1;
  id.version = 7;
  EXPECT_NE(refusal().find("version 7"), std::string::npos);
  id.version = wire::kVersion;
  id.capacity = uint64_t{1} << 60;
  EXPECT_NE(refusal().find("sizes"), std::string::npos);
  id.capacity = writer_.capacity();
  id.segment_bytes += 4096;
  EXPECT_NE(refusal().find("sizes"), std::string::npos);
  id.segment_bytes -= 4096;
  id.record_bytes = 8;
  EXPECT_NE(refusal().find("sizes"), std::string::npos);
}

TEST_F(Hostile, OtherKindsOfFilesAreRefused) {
  ASSERT_EQ(truncate(path_.c_str(), 100), 0);
  EXPECT_NE(refusal().find("100 bytes"), std::string::npos);
  const std::string pipe = folder_.path() + "/seg-pipe", link = folder_.path() + "/seg-link";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_NE(Reader::open(pipe).error().message.find("not a regular file"), std::string::npos);
  ASSERT_EQ(symlink(path_.c_str(), link.c_str()), 0);
  EXPECT_FALSE(Reader::open(link));
  EXPECT_FALSE(Reader::open(folder_.path()));
}

TEST_F(Hostile, FileCutShortAfterOpenGivesNothingAndNoSignal) {
  fill(100);
  Reader r = reader();
  ASSERT_EQ(truncate(path_.c_str(), 0), 0);
  EXPECT_EQ(r.drain(0, out_, true).count, 0u);
  EXPECT_EQ(r.head(), 0u);
  EXPECT_EQ(r.identity().pid, 0);
  EXPECT_EQ(r.name(32), "phase-32");
  r.release(10);
  r.beat(1);
  ASSERT_EQ(truncate(path_.c_str(), wire::kWorkerSegmentBytes),
            0);  // gives our mapping its pages back
}

TEST_F(Hostile, HolesStopALivingSegmentAndAreSkippedInADeadOne) {
  fill(2);
  uint64_t hole = 0;
  ASSERT_TRUE(writer_.claim(hole));  // died here
  fill(3);
  Reader r = reader();
  const auto living = r.drain(0, out_, false);
  EXPECT_EQ(living.count, 2u);
  EXPECT_EQ(living.next_index, 2u);
  EXPECT_EQ(living.lost, 0u);
  const auto dead = r.drain(0, out_, true);
  EXPECT_EQ(dead.count, 5u);
  EXPECT_EQ(dead.next_index, 6u);
  EXPECT_EQ(dead.lost, 1u);
}

TEST_F(Hostile, HeadThatCannotBeTrueEndsAtTheFirstRecordThatIsNot) {
  fill(10);
  Reader r = reader();
  for (const uint64_t head :
       {~uint64_t{0}, uint64_t{1} << 63, writer_.capacity() * 1000, uint64_t{11}}) {
    writer_.head().writer.head.store(head);
    const auto living = r.drain(0, out_, false);
    EXPECT_LE(living.count, 10u);
    const auto dead = r.drain(0, out_, true);
    EXPECT_LE(dead.count + dead.lost, writer_.capacity());
  }
  writer_.head().writer.head.store(3);
  EXPECT_EQ(r.drain(0, out_, false).next_index, 3u);
  EXPECT_EQ(r.drain(7, out_, false).next_index, 7u);  // never back
}

TEST_F(Hostile, RecordsThatNobodyWritesAreSkippedAndCounted) {
  fill(6);
  record(0).kind = static_cast<wire::RecordKind>(9);
  record(1).t1_ns = -5;
  record(2).phase = 20;  // neither built in nor a user's
  record(3).t0_ns = -1;
  record(4).flags = 0xff;
  Reader r = reader();
  const auto drained = r.drain(0, out_, false);
  EXPECT_EQ(drained.count, 2u);
  EXPECT_EQ(drained.lost, 4u);
  EXPECT_EQ(drained.next_index, 6u);
  EXPECT_EQ(out_[0].flags, 0x1f);
}

TEST_F(Hostile, StringsAndNumbersOfTheIdentityAreMadeHarmless) {
  wire::Identity& id = writer_.head().identity;
  std::memset(id.node, 'x', sizeof(id.node));  // no end
  std::strcpy(id.executable, "a\n\x1b]0;b");
  id.world_size.store(-3);
  id.rank.store(1 << 30);
  id.role = static_cast<wire::Role>(77);
  const IdentityValue v = reader().identity();
  EXPECT_EQ(v.node, std::string(sizeof(id.node), 'x'));
  EXPECT_EQ(v.executable, "a??]0;b");
  EXPECT_EQ(v.world_size, 1);
  EXPECT_EQ(v.rank, -1);
  EXPECT_EQ(v.role, wire::Role::kUnknown);
}

TEST_F(Hostile, NamesAreBoundedAndPrintable) {
  wire::NameTable& names = writer_.head().names;
  std::strcpy(names.names[0], "tokenise\t");
  std::memset(names.names[1], 'y', wire::kNameBytes);
  names.count.store(0xffffffff);
  Reader r = reader();
  EXPECT_EQ(r.name(32), "tokenise?");
  EXPECT_EQ(r.name(33), std::string(wire::kNameBytes, 'y'));
  EXPECT_EQ(r.name(34), "phase-34");  // empty
  EXPECT_EQ(r.name(3), "phase-3");
  EXPECT_EQ(r.name(255), "phase-255");
  names.count.store(1);
  EXPECT_EQ(r.name(33), "phase-33");
}

TEST_F(Hostile, ReleasedRecordsAreNotReadAgain) {
  fill(10);
  Reader r = reader();
  r.release(4);
  EXPECT_EQ(r.tail(), 4u);
  EXPECT_EQ(r.drain(0, out_, false).count, 6u);
  r.release(2);  // never back
  EXPECT_EQ(r.tail(), 4u);
  r.release(1000);  // never past head
  EXPECT_EQ(r.tail(), 10u);
}

TEST_F(Hostile, ControlHeartbeatAndNow) {
  Reader r = reader();
  r.control(wire::Control::kOff);
  r.beat(77);
  EXPECT_EQ(writer_.head().control.word.load(), static_cast<uint32_t>(wire::Control::kOff));
  EXPECT_EQ(writer_.head().reader.heartbeat_ns.load(), 77);
  writer_.head().now.phase_and_step.store(uint64_t{3} << 56 | 80);
  writer_.head().now.since_ns.store(123);
  EXPECT_EQ(r.now().phase, 3);
  EXPECT_EQ(r.now().step, 80u);
  EXPECT_EQ(r.now().since_ns, 123);
  writer_.head().now.phase_and_step.store(~uint64_t{0});
  EXPECT_EQ(r.now().phase, 11);
}

TEST_F(Hostile, SmallBuffersReadOnWhereTheyStopped) {
  fill(1000);
  Reader r = reader();
  uint64_t next = 0;
  std::array<RecordValue, 7> few;
  for (int i = 0; i < 200; ++i) {
    const auto d = r.drain(next, few, false);
    for (size_t k = 0; k < d.count; ++k) EXPECT_EQ(few[k].index, next + k);
    next = d.next_index;
  }
  EXPECT_EQ(next, 1000u);
}

}  // namespace
}  // namespace stepscope::ring
