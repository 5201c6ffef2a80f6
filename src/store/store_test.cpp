#include "store/store.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "store/database.h"
#include "store/history_fixture.h"

namespace stepscope::store {
namespace {

using fixture::difference;
using fixture::expect_same;
using fixture::files_in;
using fixture::Random;
using fixture::TemporaryFolder;
namespace fs = std::filesystem;

TEST(Store, GivesBackEveryField) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    TemporaryFolder folder;
    RunHistory run = Random(seed).run(3, 230);
    run.folder = folder.path;
    Result<Store> store = Store::create(folder.path);
    ASSERT_TRUE(store) << store.error().message;
    for (int i = 0; i < 400; ++i) {
      const Occurrence o{i % 3, static_cast<OccurrenceKind>(i % kOccurrenceKinds), i, i * 1000,
                         i * 1000 + 7 * i};
      run.ranks[static_cast<size_t>(o.rank)].add(o);
    }
    const std::string bytes("\0\xff\0\x80 any", 8);
    ASSERT_TRUE(
        store->commit(run, {{{7, ~uint64_t{0}, 12, bytes}, {-1, 3, uint64_t{1} << 40, ""}}}));
    expect_same(run, store->load());
    expect_same(run, Store::read(folder.path));
    EXPECT_TRUE(*Store::is_live(folder.path));
    ASSERT_TRUE(store->finish(run, {}));
    run.live = false;
    expect_same(run, Store::read(folder.path));
    EXPECT_FALSE(*Store::is_live(folder.path));

    const auto positions = store->positions();
    ASSERT_TRUE(positions);
    ASSERT_EQ(positions->size(), 2u);
    EXPECT_EQ((*positions)[1].nonce, ~uint64_t{0});
    EXPECT_EQ((*positions)[1].next_index, 12u);
    EXPECT_EQ((*positions)[0].next_index, uint64_t{1} << 40);
    EXPECT_EQ((*positions)[1].state, bytes);
    EXPECT_EQ((*positions)[0].state, "");
  }
}

// As the version before wrote it: read as it is, and brought up to date when it is written to.
TEST(Store, GoesOnWithADatabaseOfTheFirstVersion) {
  TemporaryFolder folder;
  RunHistory run = Random(3).run(2, 50);
  run.folder = folder.path;
  run.comparison = Comparison{};
  run.loaders.clear();
  for (RankHistory& rank : run.ranks) {  // it had no place for these
    for (StepSample& step : rank.raw) {
      step.syncs.clear();
      step.parts.recompute_ns = 0;
    }
    for (auto& level : rank.rollups)
      for (StepBlock& block : level) block.part_mean_ns.erase("recompute");
    for (MemorySample& sample : rank.memory) {
      sample.cpu_wait_share.reset();
      sample.disk_wait_share.reset();
      sample.cpu_steal_share.reset();
      sample.minor_faults_per_s.reset();
      sample.major_faults_per_s.reset();
    }
  }
  {
    Result<Store> store = Store::create(folder.path);
    ASSERT_TRUE(store && store->commit(run, {{{7, 8, 9, "state"}}}));
    ASSERT_TRUE(store->finish(run, {}));
    run.live = false;
  }
  {
    auto db = Database::open(folder.path + "/run.db", Database::Mode::kReadWrite);
    ASSERT_TRUE(db);
    ASSERT_TRUE(
        db->run("ALTER TABLE positions DROP COLUMN state; ALTER TABLE steps DROP COLUMN syncs;"
                "ALTER TABLE steps DROP COLUMN recompute_ns;"
                "ALTER TABLE rollups DROP COLUMN recompute_mean_ns;"
                "ALTER TABLE memory DROP COLUMN cpu_wait_share; DROP TABLE comparison;"
                "ALTER TABLE memory DROP COLUMN disk_wait_share;"
                "ALTER TABLE memory DROP COLUMN cpu_steal_share;"
                "ALTER TABLE memory DROP COLUMN minor_faults_per_s;"
                "ALTER TABLE memory DROP COLUMN major_faults_per_s;"
                "DROP TABLE loaders; DROP TABLE summary; PRAGMA "
                "user_version = 1"));
  }
  expect_same(run, Store::read(folder.path));
  for (int i = 0; i < 2; ++i) {
    Result<Store> store = Store::open(folder.path);
    ASSERT_TRUE(store) << store.error().message;
    const auto positions = store->positions();
    ASSERT_TRUE(positions);
    EXPECT_EQ(positions->at(0).next_index, 9u);
    EXPECT_EQ(positions->at(0).state, i == 0 ? "" : "new");
    ASSERT_TRUE(store->commit(run, {{{7, 8, 9, "new"}}}));
  }
}

TEST(Store, KeepsASummaryWithTheHistoryThatItIsOf) {
  TemporaryFolder folder;
  RunHistory run = Random(21).run(2, 30);
  run.folder = folder.path;
  const auto kept = [&] {
    const auto bytes = Store::summary(folder.path);
    EXPECT_TRUE(bytes) << bytes.error().message;
    return bytes ? *bytes : "";
  };
  Result<Store> store = Store::create(folder.path);
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_EQ(kept(), "");
  ASSERT_TRUE(store->commit(run, {}));
  const std::string bytes("by\0tes", 6);
  ASSERT_TRUE(store->finish(run, {}, bytes));
  EXPECT_EQ(kept(), bytes);
  ASSERT_TRUE(store->commit(run, {}));  // the run goes on after all
  EXPECT_EQ(kept(), "");
  ASSERT_TRUE(store->finish(run, {}));
  EXPECT_EQ(kept(), "");
}

// Grows a history as a run does: new steps, trimmed fronts, halved memory, occurrences, now and
// then a new owner.
TEST(Store, FollowsAGrowingHistory) {
  TemporaryFolder folder;
  Random random(11);
  RunHistory run = random.run(2, 0);
  run.folder = folder.path;
  for (RankHistory& r : run.ranks) r.rollups.resize(2);
  Result<Store> store = Store::create(folder.path);
  ASSERT_TRUE(store) << store.error().message;
  int64_t step = 0;
  for (int commit = 0; commit < 60; ++commit) {
    Batch batch;
    for (int i = 0; i < 37; ++i, ++step)
      for (RankHistory& r : run.ranks) {
        r.raw.push_back(random.step(r.rank, step, step * 1000));
        if (step % 10 == 0) r.rollups[0].push_back(random.block(step, 10));
        if (step % 100 == 0) r.rollups[1].push_back(random.block(step, 100));
        if (r.raw.size() > 200) r.raw.pop_front();
        if (r.rollups[0].size() > 20) r.rollups[0].pop_front();
        if (step % 3 == 0) r.memory.push_back(random.memory(step));
        if (r.memory.size() > 50)
          for (size_t k = 0; k < r.memory.size(); ++k)
            r.memory.erase(r.memory.begin() + static_cast<long>(k));
        const Occurrence o{r.rank, OccurrenceKind::kCheckpoint, step, step,
                           step + random.number(100)};
        if (step % 2 == 0) {
          r.add(o);
        }
      }
    run.notices.push_back("notice " + std::to_string(commit));
    const Status stored = store->commit(run, batch);
    ASSERT_TRUE(stored) << stored.error().message;
    expect_same(run, Store::read(folder.path));
    if (commit % 7 == 6) {
      store = Store::open(folder.path);
      ASSERT_TRUE(store) << store.error().message;
    }
  }
}

TEST(Store, ForgetsARankThatWasRenumbered) {
  TemporaryFolder folder;
  Random random(3);
  RunHistory run = random.run(2, 30);
  run.folder = folder.path;
  Result<Store> store = Store::create(folder.path);
  ASSERT_TRUE(store) << store.error().message;
  const Occurrence o{0, OccurrenceKind::kCompile, 1, 2, 3};
  run.ranks[0].add(o);
  ASSERT_TRUE(store->commit(run, {}));
  run.ranks.erase(run.ranks.begin());
  run.ranks.push_back(random.rank(5, 10));
  ASSERT_TRUE(store->commit(run, {}));
  expect_same(run, store->load());
}

TEST(Store, EndsAsOneFileAndGoesOnWhenAsked) {
  TemporaryFolder folder;
  RunHistory run = Random(4).run(1, 20);
  run.folder = folder.path;
  Result<Store> store = Store::create(folder.path);
  ASSERT_TRUE(store) << store.error().message;
  ASSERT_TRUE(store->commit(run, {}));
  EXPECT_TRUE(files_in(folder.path).contains("run.db-wal"));
  ASSERT_TRUE(store->finish(run, {}));
  EXPECT_EQ(files_in(folder.path), std::set<std::string>{"run.db"});
  ASSERT_TRUE(store->commit(run, {}));  // SIGTERM wrote a summary, and the run went on
  const auto again = Store::read(folder.path);
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->live);
  ASSERT_TRUE(store->finish(run, {}));
  EXPECT_EQ(files_in(folder.path), std::set<std::string>{"run.db"});
  EXPECT_FALSE(Store::read(folder.path)->live);
  EXPECT_EQ(files_in(folder.path), std::set<std::string>{"run.db"});
}

TEST(Store, FindingsAreRowsWithListsInJson) {
  TemporaryFolder folder;
  RunHistory run = Random(5).run(1, 20);
  Finding f;
  f.code = "INPUT_BOUND";
  f.severity = Severity::kCritical;
  f.share = 0.38;
  f.evidence = {{"input", 38.5, "ms"}, {"quote \" in name", 2, ""}};
  f.not_measured = {"device time"};
  f.advice = {{"Use more workers", std::nullopt, "look again", ""}};
  Result<Store> store = Store::create(folder.path);
  ASSERT_TRUE(store) << store.error().message;
  ASSERT_TRUE(store->finish(run, {f, f}));
  auto db = Database::open(folder.path + "/run.db", Database::Mode::kReadOnly);
  ASSERT_TRUE(db);
  Statement select(
      *db, "SELECT code, severity, share, rank, evidence, not_measured, advice FROM findings");
  ASSERT_TRUE(select.row());
  std::string code, severity, evidence, not_measured, advice;
  double share = 0;
  std::optional<int32_t> rank = 3;
  select.get(code);
  select.get(severity);
  select.get(share);
  select.get(rank);
  select.get(evidence);
  select.get(not_measured);
  select.get(advice);
  EXPECT_EQ(severity, "critical");
  EXPECT_EQ(share, 0.38);
  EXPECT_FALSE(rank.has_value());
  EXPECT_EQ(evidence, R"([{"name":"input","value":38.5,"unit":"ms"},)"
                      R"({"name":"quote \" in name","value":2.0,"unit":""}])");
  EXPECT_EQ(not_measured, R"(["device time"])");
  EXPECT_EQ(advice,
            R"([{"text":"Use more workers","gain":null,"check":"look again","not_if":""}])");
  EXPECT_EQ(db->integer("SELECT count(*) FROM findings"), 2);
}

TEST(Store, ReadingALiveRunDisturbsNothing) {
  TemporaryFolder folder;
  RunHistory run = Random(6).run(2, 50);
  run.folder = folder.path;
  Result<Store> store = Store::create(folder.path);
  ASSERT_TRUE(store) << store.error().message;
  ASSERT_TRUE(store->commit(run, {}));
  const auto files = files_in(folder.path);
  const auto wal = fs::file_size(folder.path + "/run.db-wal");
  for (int i = 0; i < 3; ++i) expect_same(run, Store::read(folder.path));
  EXPECT_EQ(files_in(folder.path), files);
  EXPECT_EQ(fs::file_size(folder.path + "/run.db-wal"), wal);
}

TEST(Store, AReaderInItsTransactionDoesNotStopTheEnd) {
  TemporaryFolder folder;
  RunHistory run = Random(6).run(1, 50);
  run.folder = folder.path;
  Result<Store> store = Store::create(folder.path);
  ASSERT_TRUE(store) << store.error().message;
  ASSERT_TRUE(store->commit(run, {}));
  {
    auto reader = Database::open(folder.path + "/run.db", Database::Mode::kReadOnly);
    ASSERT_TRUE(reader);
    reader->run("BEGIN");
    EXPECT_EQ(reader->integer("SELECT count(*) FROM steps"), 50);
    const Status finished = store->finish(run, {});
    EXPECT_TRUE(finished) << finished.error().message;
  }
  run.live = false;
  expect_same(run, Store::read(folder.path));
}

// In a child that may not write the folder (as nobody, if we are root). 0: the history was read,
// and is the one expected.
int read_unprivileged(const std::string& folder, const RunHistory& expected) {
  chmod(folder.c_str(), 0555);
  const pid_t child = fork();
  if (child == 0) {
    if (getuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(2);
    const auto run = Store::read(folder);
    if (!run) std::fprintf(stderr, "%s\n", run.error().message.c_str());
    _exit(run && difference(expected, *run).empty() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  chmod(folder.c_str(), 0755);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Store, ReadsWhereItMayNotWrite) {
  TemporaryFolder folder, left;
  RunHistory run = Random(6).run(2, 50);
  run.folder = left.path;
  {
    Result<Store> store = Store::create(folder.path);
    ASSERT_TRUE(store) << store.error().message;
    ASSERT_TRUE(store->commit(run, {}));
    for (const char* name : {"/run.db", "/run.db-wal"})
      fs::copy_file(folder.path + name, left.path + name);
  }
  const auto files = files_in(left.path);
  EXPECT_EQ(read_unprivileged(left.path, run), 0);  // what a kill left: the commit is in the WAL
  EXPECT_EQ(files_in(left.path), files);

  fs::remove(left.path + "/run.db-wal");
  fs::copy_file(folder.path + "/run.db", left.path + "/run.db",
                fs::copy_options::overwrite_existing);
  EXPECT_EQ(read_unprivileged(left.path, run),
            0);  // closed in good order: no WAL, but the header says so
  EXPECT_EQ(files_in(left.path), std::set<std::string>{"run.db"});
}

TEST(Store, ReadersNeverFailWhileAWriterWorks) {
  TemporaryFolder folder;
  RunHistory run = Random(13).run(2, 100);
  {
    ASSERT_TRUE(Store::create(folder.path));
  }
  const pid_t child = fork();
  if (child == 0) {
    Result<Store> store = Store::open(folder.path);
    for (int i = 0; store; ++i) {
      run.duration_ns = i;
      if (!store->commit(run, {}) || (i % 5 == 0 && !store->finish(run, {}))) break;
    }
    _exit(1);
  }
  for (int i = 0; i < 100; ++i) {
    const auto seen = Store::read(folder.path);
    EXPECT_TRUE(seen) << seen.error().message;
    if (seen && !seen->ranks.empty()) {
      EXPECT_EQ(seen->ranks[1].raw.size(), 100u);
    }
  }
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the writer failed";
}

TEST(Store, KilledBeforeItsFirstCommitIsAnEmptyLiveRun) {
  TemporaryFolder folder;
  {
    ASSERT_TRUE(Store::create(folder.path));
  }
  auto run = Store::read(folder.path);
  ASSERT_TRUE(run);
  EXPECT_TRUE(run->live);
  std::ofstream(folder.path + "/run.db", std::ios::trunc);
  run = Store::read(folder.path);
  ASSERT_TRUE(run);
  EXPECT_TRUE(run->live);
  EXPECT_TRUE(run->ranks.empty());
  EXPECT_TRUE(Store::open(folder.path));
}

TEST(Store, AFolderWithARunIsRefusedAndALeftWalIsNotReplayed) {
  TemporaryFolder folder;
  RunHistory run = Random(7).run(1, 50);
  run.folder = folder.path;
  {
    Result<Store> store = Store::create(folder.path);
    ASSERT_TRUE(store) << store.error().message;
    ASSERT_TRUE(store->commit(run, {}));
    const Result<Store> second = Store::create(folder.path);
    ASSERT_FALSE(second);
    EXPECT_NE(second.error().message.find(folder.path + "/run.db"), std::string::npos);
    EXPECT_NE(second.error().hint.find("--overwrite"), std::string::npos);
    fs::copy_file(folder.path + "/run.db-wal", folder.path + "/kept");
  }
  fs::remove(folder.path + "/run.db");
  fs::rename(folder.path + "/kept", folder.path + "/run.db-wal");
  Result<Store> store = Store::create(folder.path);
  ASSERT_TRUE(store) << store.error().message;
  const auto empty = store->load();
  ASSERT_TRUE(empty);
  EXPECT_TRUE(empty->ranks.empty());
}

}  // namespace
}  // namespace stepscope::store
