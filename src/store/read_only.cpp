#include "store/read_only.h"

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "store/network_copy.h"

namespace stepscope::store {
namespace {

// A private folder with a copy of a database and its WAL, removed at the end.
class PrivateCopy {
 public:
  static Result<PrivateCopy> of(const std::string& database) {
    const char* temporary = std::getenv("TMPDIR");
    std::string folder =
        std::string(temporary != nullptr && *temporary == '/' ? temporary : "/tmp") +
        "/stepscope-read-XXXXXX";
    if (mkdtemp(folder.data()) == nullptr)
      return Error{"could not make " + folder + " to read " + database + " in: " + errno_text(),
                   "set TMPDIR to a folder that can be written"};
    PrivateCopy copy(folder);
    if (Status s = copy_file(database, copy.path()); !s) return s.error();
    if (exists(database + "-wal"))
      if (Status s = copy_file(database + "-wal", copy.path() + "-wal"); !s) return s.error();
    return copy;
  }
  PrivateCopy(PrivateCopy&& other) noexcept : folder_(std::exchange(other.folder_, {})) {}
  PrivateCopy(const PrivateCopy&) = delete;
  ~PrivateCopy() {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }
  std::string path() const { return folder_ + "/run.db"; }

 private:
  explicit PrivateCopy(std::string folder) : folder_(std::move(folder)) {}
  std::string folder_;
};

// SQLite has to make its shared memory next to a WAL database, which a folder that cannot be
// written refuses.
bool needs_writable_folder(int code) {
  const int primary = code & 0xff;
  return primary == SQLITE_CANTOPEN || primary == SQLITE_READONLY;
}

}  // namespace

struct ReadOnly::Impl {
  std::optional<PrivateCopy> copy;
  Database database;  // ends before its copy does
};

ReadOnly::ReadOnly(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ReadOnly::ReadOnly(ReadOnly&&) noexcept = default;
ReadOnly::~ReadOnly() = default;
Database& ReadOnly::database() { return impl_->database; }

Result<ReadOnly> ReadOnly::open(const std::string& run_folder) {
  const std::string path = find_placed(run_folder).live_path;
  if (!exists(path)) return Error{"could not read " + path + ": " + errno_text(), "stepscope runs"};
  Result<Database> database = Database::open(path, Database::Mode::kReadOnly);
  if (!database) return database.error();
  database->integer("SELECT count(*) FROM sqlite_schema");
  if (database->good())
    return ReadOnly(std::make_unique<Impl>(Impl{std::nullopt, std::move(*database)}));
  if (!needs_writable_folder(database->code())) return database->take_error("read");

  Result<PrivateCopy> copy = PrivateCopy::of(path);
  if (!copy) return copy.error();
  Result<Database> copied = Database::open(copy->path(), Database::Mode::kReadWrite);
  if (!copied) return copied.error();
  return ReadOnly(std::make_unique<Impl>(Impl{std::move(*copy), std::move(*copied)}));
}

Status copy_file(const std::string& from, const std::string& to) {
  std::error_code error;
  std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing, error);
  if (error)
    return Error{"could not copy " + from + " to " + to + ": " + error.message(),
                 "free space in " + to};
  return ok();
}

}  // namespace stepscope::store
