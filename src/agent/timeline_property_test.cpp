// What must hold for any events, and any state, sensible or not. Seeds are fixed; a failure names
// its seed.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "agent/event_script.h"
#include "agent/expect_sums.h"
#include "agent/fold.h"
#include "agent/timeline.h"

namespace stepscope::agent {
namespace {

using Random = std::mt19937_64;

uint64_t below(Random& random, uint64_t end) { return random() % end; }

// Any values; `wild` of a hundred are not even close to what a recorder writes.
std::vector<ring::EventValue> garbage(Random& random, size_t count, uint64_t wild) {
  std::vector<ring::EventValue> events(count);
  int64_t t_ns = static_cast<int64_t>(below(random, 1'000));
  for (size_t i = 0; i < count; ++i) {
    ring::EventValue& e = events[i];
    e.index = i;
    t_ns += static_cast<int64_t>(below(random, 30));
    e.t_ns = t_ns;
    e.a = below(random, 4);
    e.code = static_cast<wire::EventCode>(below(random, 25));
    e.phase = static_cast<uint8_t>(below(random, 40));
    e.flags = static_cast<uint8_t>(below(random, 64));
    if (below(random, 100) >= wild) continue;
    switch (below(random, 6)) {
      case 0:
        e.t_ns = static_cast<int64_t>(random());
        break;
      case 1:
        e.t_ns = static_cast<int64_t>(below(random, static_cast<uint64_t>(t_ns) + 1));
        break;
      case 2:
        e.a = random();
        break;
      case 3:
        e.code = static_cast<wire::EventCode>(random());
        e.phase = static_cast<uint8_t>(random());
        break;
      case 4:
        e.device = 0;
        break;
      default:
        e.missing = static_cast<uint32_t>(random());
    }
  }
  return events;
}

struct Read {
  Timeline timeline;
  Fold fold{0,
            {.name_of = [](uint8_t) { return std::string("user"); },
             .group_of = [](uint32_t) { return std::optional<ring::GroupValue>(); }}};
  Folded out;
  std::vector<Record> records;

  void push(const std::vector<ring::EventValue>& events) {
    for (const ring::EventValue& event : events) {
      timeline.push(event, records);
      hand_on();
      EXPECT_TRUE(timeline.state().sane());
    }
  }
  void finish() {
    timeline.finish(0, records);
    hand_on();
    fold.finish(timeline.in_progress(), out);
  }
  void hand_on() {
    EXPECT_LE(records.size(), 64u);  // of one event
    for (const Record& record : records) fold.push(record, out);
    records.clear();
  }
};

TEST(TimelineProperty, AnyEventsGiveStepsThatAddUp) {
  size_t steps = 0;
  for (uint64_t seed = 0; seed < 3'000; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Read read;
    read.push(garbage(random, 200, seed % 3 == 0 ? 0 : 5));
    read.finish();
    expect_sums(read.out);
    if (::testing::Test::HasFailure()) return;
    steps += read.out.steps.size();
  }
  EXPECT_GT(steps, 2'000u);
}

TEST(TimelineProperty, FromAnyPointTheSameEventsGiveTheSameRecords) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const auto events = garbage(random, 200, 3);
    Timeline whole, later;
    std::vector<Record> expected, found;
    const size_t cut = below(random, events.size());
    for (size_t i = 0; i < cut; ++i) whole.push(events[i], expected);
    expected.clear();
    const auto state = restore_state(save_state(whole.state()));
    ASSERT_TRUE(state);
    later.restore(*state);
    for (size_t i = cut; i < events.size(); ++i) {
      whole.push(events[i], expected);
      later.push(events[i], found);
    }
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(found[i].kind, expected[i].kind);
      ASSERT_EQ(found[i].t0_ns, expected[i].t0_ns);
      ASSERT_EQ(found[i].t1_ns, expected[i].t1_ns);
      ASSERT_EQ(found[i].step, expected[i].step);
      ASSERT_EQ(found[i].flags, expected[i].flags);
    }
  }
}

std::string some_state() {
  Timeline timeline;
  std::vector<Record> out;
  for (const ring::EventValue& event :
       EventScript("get L; fwd; bwd; opt A; eval; get V off; fwd off; train; get L; fwd(; begin 40")
           .events)
    timeline.push(event, out);
  return save_state(timeline.state());
}

TEST(TimelineProperty, AStateOfWhichAnyByteIsOtherOrMissingIsRefused) {
  const std::string whole = some_state();
  ASSERT_TRUE(restore_state(whole));
  for (size_t size = 0; size < whole.size(); ++size)
    ASSERT_FALSE(restore_state(std::string_view(whole).substr(0, size)));
  EXPECT_FALSE(restore_state(whole + "x"));
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 1 << i % 8);
    ASSERT_FALSE(restore_state(damaged)) << i;
  }
}

// Somebody who also sets the checksum right gets steps that make no sense, and no more.
TEST(TimelineProperty, AForgedStateDoesNoHarm) {
  const std::string whole = some_state();
  size_t accepted = 0;
  for (uint64_t seed = 0; seed < 6'000; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::string forged = whole;
    const size_t header = whole.size() - sizeof(TimelineState);
    for (uint64_t n = 1 + below(random, 3); n > 0; --n)
      forged[header + below(random, sizeof(TimelineState))] = static_cast<char>(random());
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = header; i < forged.size(); ++i)
      hash = (hash ^ static_cast<uint8_t>(forged[i])) * 0x100000001b3;
    std::memcpy(forged.data() + header - sizeof(hash), &hash, sizeof(hash));
    const auto state = restore_state(forged);
    if (!state) continue;
    ++accepted;
    Read read;
    read.timeline.restore(*state);
    read.push(garbage(random, 100, 3));
    read.finish();
    expect_sums(read.out);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(accepted, 500u);
}

}  // namespace
}  // namespace stepscope::agent
