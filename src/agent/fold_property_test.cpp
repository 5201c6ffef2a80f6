// What must hold for any records, sensible or not. Seeds are fixed; a failure names its seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "agent/expect_sums.h"
#include "agent/fold.h"

namespace stepscope::agent {
namespace {

using Random = std::mt19937_64;

int64_t between(Random& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
}

Record span(uint8_t phase, int64_t t0_ns, int64_t t1_ns) {
  Record r;
  r.phase = phase;
  r.t0_ns = t0_ns;
  r.t1_ns = t1_ns;
  return r;
}

Record close(int64_t t0_ns, int64_t t1_ns) {
  Record r = span(0, t0_ns, t1_ns);
  r.kind = RecordKind::kStep;
  return r;
}

std::string name_of(uint8_t phase) { return "u" + std::to_string(phase % 3); }
std::optional<ring::GroupValue> group_of(uint32_t) { return std::nullopt; }

Folded fold_all(const std::vector<Record>& records) {
  Fold fold(0, {name_of, group_of});
  Folded out;
  uint64_t needed = 0;
  for (size_t i = 0; i < records.size(); ++i) {
    Record r = records[i];
    r.index = i;
    fold.push(r, out);
    EXPECT_LE(needed, fold.needed_index());
    EXPECT_LE(fold.needed_index(), i + 1);
    needed = fold.needed_index();
  }
  fold.finish({}, out);
  EXPECT_EQ(fold.needed_index(), records.size());
  return out;
}

// Anything a writer gone mad could leave that the reader lets through.
std::vector<Record> garbage(Random& random) {
  std::vector<Record> records(static_cast<size_t>(between(random, 0, 120)));
  const int64_t range = int64_t{1} << between(random, 2, 40);
  for (Record& r : records) {
    r.t0_ns = between(random, 0, range);
    r.t1_ns = between(random, 0, 9) == 0 ? static_cast<int64_t>(random())
                                         : r.t0_ns + between(random, 0, range);
    r.kind = static_cast<RecordKind>(between(random, 0, 6));
    r.phase = static_cast<uint8_t>(between(random, 0, 4) == 0 ? random() : random() % 40);
    r.flags = static_cast<uint8_t>(random());
    r.step = static_cast<uint32_t>(random());
    r.samples = random();
  }
  return records;
}

TEST(FoldProperty, AnyRecordsGivePhasesThatAddUp) {
  for (uint64_t seed = 0; seed < 20'000; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    expect_sums(fold_all(garbage(random)));
    if (HasFatalFailure()) return;
  }
}

TEST(FoldProperty, TheSameRecordsGiveTheSameSteps) {
  for (uint64_t seed = 0; seed < 2'000; ++seed) {
    Random first(seed), second(seed);
    const Folded a = fold_all(garbage(first)), b = fold_all(garbage(second));
    ASSERT_EQ(a.steps.size(), b.steps.size());
    ASSERT_EQ(a.occurrences.size(), b.occurrences.size());
    for (size_t i = 0; i < a.steps.size(); ++i) {
      ASSERT_EQ(a.steps[i].phase_ns, b.steps[i].phase_ns) << seed;
      ASSERT_EQ(a.steps[i].user_phase_ns, b.steps[i].user_phase_ns) << seed;
    }
  }
}

void push_from(Fold& fold, const std::vector<Record>& records, size_t from, size_t to,
               Folded& out) {
  for (size_t i = from; i < to; ++i) {
    Record r = records[i];
    r.index = i;
    fold.push(r, out);
  }
}

// A restarted agent has the steps that were stored and reads on from what was needed then.
TEST(FoldProperty, ARestartAnywhereLosesAndDoublesNothing) {
  for (uint64_t seed = 0; seed < 20'000; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::vector<Record> records = garbage(random);
    for (Record& r : records)
      r.flags &=
          static_cast<uint8_t>(r.kind == RecordKind::kStep ? ~kStepExplicit : ~kSpanEpochStart);
    const Folded whole = fold_all(records);
    const size_t cut =
        static_cast<size_t>(between(random, 0, static_cast<int64_t>(records.size())));
    Folded out;
    Fold before(0, {name_of, group_of}), after(0, {name_of, group_of});
    push_from(before, records, 0, cut, out);
    if (!out.steps.empty()) after.resume(out.steps.back().end_ns);
    push_from(after, records, before.needed_index(), records.size(), out);
    after.finish({}, out);
    ASSERT_EQ(out.steps.size(), whole.steps.size());
    for (size_t i = 0; i < out.steps.size(); ++i) {
      ASSERT_EQ(out.steps[i].begin_ns, whole.steps[i].begin_ns);
      ASSERT_EQ(out.steps[i].phase_ns, whole.steps[i].phase_ns);
      ASSERT_EQ(out.steps[i].user_phase_ns, whole.steps[i].user_phase_ns);
    }
    ASSERT_EQ(out.occurrences.size(), whole.occurrences.size());
    for (size_t i = 0; i < out.occurrences.size(); ++i)
      ASSERT_EQ(out.occurrences[i].begin_ns, whole.occurrences[i].begin_ns);
  }
}

bool is_any(const Record& r, std::initializer_list<Phase> phases) {
  return std::any_of(phases.begin(), phases.end(),
                     [&](Phase p) { return r.phase == static_cast<uint8_t>(p); });
}

// Who owns the instant, by the rule as it is worded; spans begin at different times, so innermost
// is unique.
uint8_t naive_owner(const std::vector<Record>& spans, int64_t t_ns) {
  const Record *taken = nullptr, *whole = nullptr, *plain = nullptr;
  for (const Record& r : spans) {
    if (t_ns < r.t0_ns || t_ns >= r.t1_ns) continue;
    const Record*& best = is_any(r, {Phase::kGc, Phase::kCompile}) ? taken
                          : is_any(r, {Phase::kValidation, Phase::kCheckpoint, Phase::kProfiler})
                              ? whole
                              : plain;
    if (best == nullptr || r.t0_ns > best->t0_ns) best = &r;
  }
  const Record* owner = taken != nullptr ? taken : whole != nullptr ? whole : plain;
  return owner != nullptr ? owner->phase : static_cast<uint8_t>(Phase::kOther);
}

TEST(FoldProperty, EveryInstantHasTheOwnerOfTheRule) {
  for (uint64_t seed = 0; seed < 3'000; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::vector<int64_t> begins(60);
    for (size_t i = 0; i < begins.size(); ++i)
      begins[i] = static_cast<int64_t>(2 * i) + between(random, 0, 1) - 10;
    std::shuffle(begins.begin(), begins.end(), random);
    begins.resize(static_cast<size_t>(between(random, 0, 25)));
    std::vector<Record> spans;
    for (int64_t t0_ns : begins) {
      if (t0_ns < 0) continue;
      uint8_t phase = static_cast<uint8_t>(between(random, 0, kPhaseCount - 1));
      if (phase == static_cast<uint8_t>(Phase::kBackward))
        phase = static_cast<uint8_t>(kFirstUserPhase);
      spans.push_back(span(phase, t0_ns, t0_ns + between(random, 0, 60)));
    }
    std::sort(spans.begin(), spans.end(),
              [](const auto& a, const auto& b) { return a.t1_ns < b.t1_ns; });
    const int64_t begin_ns = between(random, 0, 40), end_ns = begin_ns + between(random, 0, 80);
    std::array<int64_t, kPhaseCount> expected{};
    int64_t user_ns = 0;
    for (int64_t t_ns = begin_ns; t_ns < end_ns; ++t_ns) {
      const uint8_t owner = naive_owner(spans, t_ns);
      owner < kPhaseCount ? ++expected[owner] : ++user_ns;
    }
    std::vector<Record> records = spans;
    records.push_back(close(begin_ns, end_ns));
    const Folded out = fold_all(records);
    ASSERT_FALSE(out.steps.empty());
    ASSERT_EQ(out.steps[0].phase_ns, expected);
    ASSERT_EQ(out.steps[0].user_phase_ns.empty() ? 0 : out.steps[0].user_phase_ns[0].second,
              user_ns);
  }
}

TEST(FoldProperty, AStepWithTooManyRecordsIsIncompleteAndTheNextIsNot) {
  Fold fold(0, {name_of, group_of});
  Folded out;
  uint64_t index = 0;
  const auto push = [&](Record r) {
    r.index = index++;
    fold.push(r, out);
  };
  int64_t t_ns = 0;
  for (size_t i = 0; i < 3 * Fold::kMaxPending; ++i, t_ns += 10)
    push(span(static_cast<uint8_t>(i % 2 == 0 ? Phase::kCheckpoint : Phase::kForward), t_ns,
              t_ns + 10));
  EXPECT_GE(fold.needed_index(), 2 * Fold::kMaxPending);
  push(close(0, t_ns));
  push(span(static_cast<uint8_t>(Phase::kForward), t_ns, t_ns + 5));
  push(close(t_ns, t_ns + 10));
  ASSERT_EQ(out.steps.size(), 2u);
  EXPECT_TRUE(out.steps[0].incomplete);
  EXPECT_FALSE(out.steps[1].incomplete);
  EXPECT_EQ(out.steps[1][Phase::kForward], 5);
  EXPECT_EQ(out.occurrences.size(), 3 * Fold::kMaxPending / 2);
  expect_sums(out);
}

TEST(FoldProperty, SpansThatNeverEndCostNoMoreWithEachStep) {
  Fold fold(0, {name_of, group_of});
  Folded out;
  uint64_t index = 0;
  const auto push = [&](Record r) {
    r.index = index++;
    fold.push(r, out);
  };
  for (int64_t i = 0; i < 50'000; ++i)
    push(span(static_cast<uint8_t>(Phase::kForward), i, int64_t{1} << 61));
  for (int64_t i = 0; i < 50'000; ++i) push(close(60'000 + i, 60'001 + i));
  EXPECT_EQ(out.steps.size(), 50'000u);
  EXPECT_EQ(out.steps.back()[Phase::kForward] + out.steps.back()[Phase::kOther], 1);
}

}  // namespace
}  // namespace stepscope::agent
