#include "store/reading.h"

#include <gtest/gtest.h>

#include <fstream>

#include "store/history_fixture.h"
#include "store/store.h"

namespace stepscope::store {
namespace {

using fixture::expect_same;
using fixture::Random;
using fixture::TemporaryFolder;

// The pieces put together.
RunHistory joined(Reading& reading) {
  RunHistory run = reading.run();
  for (RankHistory& rank : run.ranks) {
    EXPECT_TRUE(rank.raw.empty());
    auto steps = reading.steps(rank.rank);
    EXPECT_TRUE(steps);
    if (steps) rank.raw = std::move(*steps);
    rank.see_phases();
  }
  return run;
}

TEST(Reading, PiecesAreTheWholeOfOneState) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    TemporaryFolder folder;
    RunHistory run = Random(seed).run(3, 230);
    run.folder = folder.path;
    auto store = Store::create(folder.path);
    ASSERT_TRUE(store);
    ASSERT_TRUE(store->commit(run, {}));
    auto reading = Reading::open(folder.path);
    ASSERT_TRUE(reading) << reading.error().message;
    const RunHistory then = run;
    for (RankHistory& rank : run.ranks)
      rank.add(Random(seed).step(rank.rank, 1000, rank.last_end_ns), run.settings);
    ASSERT_TRUE(store->commit(run, {}));  // the reader is in nobody's way
    expect_same(then, joined(*reading));
    EXPECT_TRUE(reading->steps(77)->empty());

    ASSERT_TRUE(store->finish(run, {}));
    run.live = false;
    auto ended = Reading::open(folder.path);
    ASSERT_TRUE(ended);
    expect_same(run, joined(*ended));
  }
}

TEST(Reading, WhatIsNoRunIsAnError) {
  TemporaryFolder folder;
  EXPECT_FALSE(Reading::open(folder.path));
  std::ofstream(folder.path + "/run.db") << "this is no database, and long enough to tell";
  const auto reading = Reading::open(folder.path);
  ASSERT_FALSE(reading);
  EXPECT_NE(reading.error().message.find("run.db"), std::string::npos);
}

}  // namespace
}  // namespace stepscope::store
