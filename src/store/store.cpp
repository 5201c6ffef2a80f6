#include "store/store.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "store/network_copy.h"
#include "store/read.h"
#include "store/read_only.h"
#include "store/schema.h"
#include "store/write.h"

namespace stepscope::store {
namespace {

Status set_live_mode(Database& database) {
  database.run("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;");
  if (!database.good()) return database.take_error("write");
  return ok();
}

// An empty file, made by us alone; journals of a database that is gone are removed, since SQLite
// would replay them.
Status make_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) {
    if (errno == EEXIST)
      return Error{"could not create " + path + ": it exists, so the folder holds a run already",
                   "choose another folder with --run-dir, or replace the run with --overwrite"};
    return database_error("create", path, SQLITE_CANTOPEN, errno, "no database there");
  }
  ::close(fd);
  for (const char* suffix : {"-wal", "-shm", "-journal"}) unlink((path + suffix).c_str());
  return ok();
}

}  // namespace

struct Store::Impl {
  std::string run_folder;
  Placement placement;
  Database database;
  std::optional<Writer> writer;  // after the database: its statements end first
  bool one_file = false;         // finish() was called
  int64_t copied_ns = 0;
  std::optional<Error> copy_error;

  Impl(std::string folder, Placement where, Database opened)
      : run_folder(std::move(folder)), placement(std::move(where)), database(std::move(opened)) {}
  ~Impl() {
    writer.reset();
    if (one_file && placement.copied() && !copy_error) remove_live(placement);
  }

  Status transaction(const RunHistory& run, const Batch& batch,
                     const std::vector<Finding>* findings, std::string_view summary) {
    if (!writer) writer.emplace(database);
    database.run("BEGIN IMMEDIATE");
    writer->write(run, batch, findings != nullptr);
    if (findings != nullptr) writer->write_findings(*findings);
    writer->write_summary(summary);
    database.run("COMMIT");
    if (database.good()) return ok();
    Error error = database.take_error("write");
    writer.reset();  // it counted rows that are not there
    if (sqlite3_get_autocommit(database.handle()) == 0) database.run("ROLLBACK");
    (void)database.take_error("roll back");
    return error;
  }

  void copy_if_due(bool now) {
    if (!placement.copied()) return;
    const int64_t clock = monotonic_ns();
    if (!now && copied_ns != 0 && clock - copied_ns < network_policy().copy_every_ns) return;
    copied_ns = clock;
    const Status copied = copy_to_final(database, placement);
    copy_error = copied ? std::nullopt : std::optional(copied.error());
  }
};

Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

Result<Store> Store::create(const std::string& run_folder) {
  // The name in the run folder is what two creators would fight for, also where the database lives
  // elsewhere.
  if (Status s = make_file(run_folder + "/run.db"); !s) return s.error();
  if (const Placement earlier = find_placed(run_folder); earlier.copied()) remove_live(earlier);
  return open(run_folder);
}

Result<Store> Store::open(const std::string& run_folder) {
  Result<Placement> placement = place(run_folder);
  if (!placement) return placement.error();
  if (placement->copied() && !exists(placement->live_path) && exists(placement->final_path))
    if (Status s = copy_file(placement->final_path, placement->live_path); !s) return s.error();
  Result<Database> database = Database::open(placement->live_path, Database::Mode::kReadWrite);
  if (!database) return database.error();
  const Result<Content> content = identify(*database);
  if (!content) return content.error();
  if (Status s = set_live_mode(*database); !s) return s.error();
  if (Status s = *content == Content::kEmpty ? create_tables(*database) : upgrade(*database); !s)
    return s.error();
  return Store(std::make_unique<Impl>(run_folder, std::move(*placement), std::move(*database)));
}

Result<RunHistory> Store::read(const std::string& run_folder) {
  auto file = ReadOnly::open(run_folder);
  if (!file) return file.error();
  return read_database(file->database(), run_folder);
}

Result<bool> Store::is_live(const std::string& run_folder) {
  auto file = ReadOnly::open(run_folder);
  if (!file) return file.error();
  Database& database = file->database();
  const Result<Content> content = identify(database);
  if (!content) return content.error();
  if (*content != Content::kRun) return true;  // killed before its first commit
  const bool ended = database.integer("SELECT count(*) FROM runs WHERE state = 'ended'") != 0;
  if (!database.good()) return database.take_error("read");
  return !ended;
}

Result<std::string> Store::summary(const std::string& run_folder) {
  auto file = ReadOnly::open(run_folder);
  if (!file) return file.error();
  Database& database = file->database();
  const Result<Content> content = identify(database);
  if (!content) return content.error();
  std::string bytes;
  if (*content != Content::kRun || database.integer("PRAGMA user_version") < 5) return bytes;
  {
    Statement select(database, "SELECT bytes FROM summary, runs WHERE state = 'ended'");
    if (select.row()) select.get_bytes(bytes);
  }
  if (!database.good()) return database.take_error("read");
  return bytes;
}

Status Store::commit(const RunHistory& run, const Batch& batch) {
  if (impl_->one_file) {
    if (Status s = set_live_mode(impl_->database); !s) return s;
    impl_->one_file = false;
  }
  Status stored = impl_->transaction(run, batch, nullptr, {});
  if (stored) impl_->copy_if_due(false);
  return stored;
}

Result<RunHistory> Store::load() { return read_database(impl_->database, impl_->run_folder); }
Result<std::vector<SegmentPosition>> Store::positions() { return read_positions(impl_->database); }

Status Store::finish(const RunHistory& run, const std::vector<Finding>& findings,
                     std::string_view summary) {
  if (Status s = impl_->transaction(run, {}, &findings, summary); !s) return s;
  // A reader at this very moment may keep the WAL for longer than we wait: then it stays, and
  // nothing is lost.
  impl_->database.run("PRAGMA wal_checkpoint(TRUNCATE)");
  impl_->database.run("PRAGMA journal_mode = DELETE");
  if ((impl_->database.code() & 0xff) == SQLITE_BUSY) (void)impl_->database.take_error("finish");
  if (!impl_->database.good()) return impl_->database.take_error("finish");
  impl_->one_file = true;
  impl_->copy_if_due(true);
  if (impl_->copy_error) return *impl_->copy_error;
  return ok();
}

}  // namespace stepscope::store
