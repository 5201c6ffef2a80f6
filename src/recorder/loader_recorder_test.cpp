#include "recorder/loader_recorder.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "ring/reader.h"
#include "ring/test_folder.h"

namespace stepscope::recorder {

using wire::EventCode;

class LoaderRecorderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    r_.reset(new LoaderRecorder());
    OpenOptions options;
    options.folder = folder_.path();
    options.segment_bytes = wire::kWorkerSegmentBytes;
    ASSERT_TRUE(r_->open(options));
    auto reader = ring::Reader::open(folder_.only_file());
    ASSERT_TRUE(reader);
    reader_.emplace(std::move(*reader));
    begin_ns_ = monotonic_ns();
  }
  std::vector<ring::EventValue> events() {
    std::vector<ring::EventValue> out(4'000);
    const auto drained = reader_->drain(next_, out);
    EXPECT_EQ(drained.lost, 0u);
    next_ = drained.next_index;
    out.resize(drained.count);
    return out;
  }

  ring::TestFolder folder_;
  std::unique_ptr<LoaderRecorder> r_;
  std::optional<ring::Reader> reader_;
  uint64_t next_ = 0;
  int64_t begin_ns_ = 0;
};

TEST_F(LoaderRecorderTest, IsAWorkersSegment) {
  EXPECT_EQ(reader_->identity().role, wire::Role::kWorker);
}

TEST_F(LoaderRecorderTest, ManyShortBatchesAreOneSetOfEvents) {
  for (int i = 0; i < 1000; ++i) {
    r_->add(LoaderPart::kCollate, 10);
    r_->batch_done(0, 4, 400, begin_ns_);
  }
  EXPECT_TRUE(events().empty());
  r_->batch_done(0, 4, 400, begin_ns_ + LoaderRecorder::kFlushNs + 1'000'000'000);
  const auto all = events();
  ASSERT_FALSE(all.empty());
  EXPECT_LE(all.size(), 6u);
  EXPECT_EQ(all.back().code, EventCode::kLoaderBatches);
  EXPECT_EQ(all.back().a, uint64_t{1001} << 32 | 4004);
  EXPECT_FALSE(all.back().has(wire::kDetailed));
  for (const auto& e : all) {
    if (e.phase == static_cast<uint8_t>(LoaderPart::kCollate)) {
      EXPECT_EQ(e.a, 10'000u);
    }
  }
}

TEST_F(LoaderRecorderTest, ShortSamplesAreLookedAtNowAndThenAndLongOnesAlways) {
  const auto looked_at = [&](int64_t batch_ns) {
    int count = 0;
    for (int i = 0; i < 160; ++i) {
      count += r_->detailed() ? 1 : 0;
      r_->batch_done(0, 1, batch_ns, begin_ns_);
    }
    return count;
  };
  const int of_short = looked_at(1'000);
  EXPECT_GE(of_short, 160 / static_cast<int>(LoaderRecorder::kDetailEvery) - 1);
  EXPECT_LE(of_short, 160 / static_cast<int>(LoaderRecorder::kDetailEvery) + 2);
  looked_at(1'000'000);
  EXPECT_EQ(looked_at(1'000'000), 160);
}

TEST_F(LoaderRecorderTest, NamesUntilThereIsNoRoom) {
  const uint8_t first = r_->name("Resize");
  EXPECT_EQ(first, kFirstUserPhase);
  EXPECT_EQ(r_->name("Resize"), first);
  EXPECT_EQ(reader_->name(first), "Resize");
  for (int i = 1; i < kMaxUserPhases; ++i)
    EXPECT_NE(r_->name(("t" + std::to_string(i)).c_str()), 0);
  EXPECT_EQ(r_->name("one more"), 0);
}

TEST_F(LoaderRecorderTest, TheControlWordSilencesAtTheNextFlush) {
  reader_->control(wire::Control::kOff);
  r_->batch_done(0, 1, 1'000'000, begin_ns_);
  r_->flush(begin_ns_);
  EXPECT_TRUE(events().empty());
  EXPECT_FALSE(r_->recording());
}

TEST_F(LoaderRecorderTest, AFullRingDropsAndCounts) {
  for (int i = 0; i < 3000; ++i) r_->epoch(1);
  EXPECT_GT(reader_->dropped(), 1000u);
}

}  // namespace stepscope::recorder
