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
  void fill(int events) {
    for (int i = 0; i < events; ++i) writer_.write(kWhat, 0, i);
  }
  wire::Event& event(uint64_t i) {
    return reinterpret_cast<wire::Event*>(reinterpret_cast<char*>(&writer_.head()) +
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

  static constexpr uint32_t kWhat = wire::pack(wire::EventCode::kFetchEnd);
  TestFolder folder_;
  std::string path_;
  Writer writer_;
  std::vector<EventValue> out_ = std::vector<EventValue>(4096);
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
  id.event_bytes = 8;
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
  EXPECT_EQ(r.drain(0, out_).count, 0u);
  EXPECT_FALSE(r.oldest(0));
  EXPECT_EQ(r.identity().pid, 0);
  EXPECT_EQ(r.name(32), "phase-32");
  r.release(10);
  r.beat(1);
  ASSERT_EQ(truncate(path_.c_str(), wire::kWorkerSegmentBytes),
            0);  // gives our mapping its pages back
}

TEST_F(Hostile, SlotWithAnotherNumberEndsTheReadingAndTheOldestAfterItIsFound) {
  fill(6);
  event(2).seq.store(77);  // no number of this slot
  Reader r = reader();
  const auto drained = r.drain(0, out_);
  EXPECT_EQ(drained.count, 2u);
  EXPECT_EQ(drained.next_index, 2u);
  EXPECT_EQ(drained.lost, 0u);
  EXPECT_EQ(r.oldest(2), 3u);
  EXPECT_EQ(r.drain(3, out_).next_index, 6u);
  EXPECT_FALSE(r.oldest(6));
  EXPECT_EQ(r.oldest(0), 0u);
}

TEST_F(Hostile, NumbersThatCannotBeTrueAreNotFollowed) {
  fill(3);
  for (const uint64_t seq : {~uint64_t{0}, uint64_t{1} << 63, uint64_t{5}, uint64_t{0}}) {
    event(3).seq.store(seq);
    Reader r = reader();
    EXPECT_EQ(r.drain(0, out_).next_index, 3u);
    for (const uint64_t from : {uint64_t{3}, uint64_t{4}, ~uint64_t{0}, uint64_t{1} << 62})
      EXPECT_LE(r.drain(from, out_).count, writer_.capacity());
  }
}

TEST_F(Hostile, EventsThatNobodyWritesAreSkippedAndCounted) {
  fill(5);
  const auto phase_begin = [](uint8_t phase) {
    return wire::pack(wire::EventCode::kPhaseBegin, phase);
  };
  event(0).what.store(wire::pack(static_cast<wire::EventCode>(99)));
  event(1).t_ns.store(-5);
  event(2).what.store(phase_begin(20));  // neither built in nor a user's
  event(3).what.store(phase_begin(40));
  event(4).what.store(wire::pack(wire::EventCode::kFetchEnd, 0, 0xff));
  Reader r = reader();
  const auto drained = r.drain(0, out_);
  EXPECT_EQ(drained.count, 2u);
  EXPECT_EQ(drained.lost, 3u);
  EXPECT_EQ(drained.next_index, 5u);
  EXPECT_EQ(out_[0].phase, 40);
  EXPECT_EQ(out_[1].flags, wire::kEveryEventFlag);
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

TEST_F(Hostile, TailNeverGoesBackAndOneThatCannotBeTrueIsNone) {
  Reader r = reader();
  EXPECT_EQ(r.tail(), 0u);
  r.release(4);
  EXPECT_EQ(r.tail(), 4u);
  r.release(2);
  EXPECT_EQ(r.tail(), 4u);
  writer_.head().reader.tail_check.store(1);
  EXPECT_EQ(r.tail(), 0u);
}

TEST_F(Hostile, ControlAndHeartbeat) {
  Reader r = reader();
  r.control(wire::Control::kOff);
  r.beat(77);
  EXPECT_EQ(writer_.head().control.word.load(), static_cast<uint32_t>(wire::Control::kOff));
  EXPECT_EQ(writer_.head().reader.heartbeat_ns.load(), 77);
}

TEST_F(Hostile, SmallBuffersReadOnWhereTheyStopped) {
  fill(1000);
  Reader r = reader();
  uint64_t next = 0;
  std::array<EventValue, 7> few;
  for (int i = 0; i < 200; ++i) {
    const auto d = r.drain(next, few);
    for (size_t k = 0; k < d.count; ++k) EXPECT_EQ(few[k].index, next + k);
    next = d.next_index;
  }
  EXPECT_EQ(next, 1000u);
}

}  // namespace
}  // namespace stepscope::ring
