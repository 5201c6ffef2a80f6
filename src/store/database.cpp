#include "store/database.h"

#include <utility>

#include "base/text.h"

namespace stepscope::store {

Result<Database> Database::open(const std::string& path, Mode mode) {
  sqlite3* handle = nullptr;
  const int flags = (mode == Mode::kReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE) |
                    SQLITE_OPEN_NOMUTEX;
  const int code = sqlite3_open_v2(path.c_str(), &handle, flags, nullptr);
  Database database(handle, path);
  if (code != SQLITE_OK) {
    database.note(code);
    return database.take_error("open");
  }
  sqlite3_extended_result_codes(handle, 1);
  sqlite3_busy_timeout(handle, 500);
  database.run("PRAGMA trusted_schema = OFF; PRAGMA temp_store = MEMORY;");
  if (!database.good()) return database.take_error("open");
  return database;
}

Database::Database(Database&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)),
      path_(std::move(other.path_)),
      error_(other.error_),
      system_error_(other.system_error_),
      text_(std::move(other.text_)) {}

Database& Database::operator=(Database&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(path_, other.path_);
  std::swap(error_, other.error_);
  std::swap(system_error_, other.system_error_);
  std::swap(text_, other.text_);
  return *this;
}

Database::~Database() { sqlite3_close(handle_); }

void Database::note(int code) {
  if (error_ != SQLITE_OK) return;
  error_ = code;
  system_error_ = handle_ == nullptr ? 0 : sqlite3_system_errno(handle_);
  text_ = handle_ == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(handle_);
}

Error Database::take_error(std::string_view doing) {
  Error error = database_error(doing, path_, error_, system_error_, text_);
  error_ = SQLITE_OK;
  return error;
}

bool Database::run(const char* sql) {
  if (!good()) return false;
  const int code = sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) note(code);
  return good();
}

int64_t Database::integer(const char* sql) {
  Statement statement(*this, sql);
  int64_t value = 0;
  if (statement.row()) statement.get(value);
  return value;
}

std::string set_aside(const std::string& path) {
  return "the file was left as it is; to set it aside: mv " + shell_quote(path) + " " +
         shell_quote(path + ".bad");
}

Error database_error(std::string_view doing, const std::string& path, int code, int system_error,
                     std::string_view text) {
  std::string message = "could not " + std::string(doing) + " " + path + ": " + std::string(text);
  const int primary = code & 0xff;
  const bool about_files = primary == SQLITE_CANTOPEN || primary == SQLITE_IOERR ||
                           primary == SQLITE_FULL || primary == SQLITE_READONLY;
  if (about_files && system_error != 0)
    message += std::string(" (") + errno_text(system_error) + ")";
  switch (primary) {
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      return {message, set_aside(path)};
    case SQLITE_FULL:
      return {message, "free space on its file system, or choose another with --run-dir"};
    case SQLITE_IOERR:
      return {
          message,
          "look at its file system (full? over quota? gone?), or choose another with --run-dir"};
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return {message, "look at the folder's permissions, or choose another with --run-dir"};
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {message, "another program holds the file; try again when it has ended"};
    default:
      return {message, ""};
  }
}

Statement::Statement(Database& database, const std::string& sql) : database_(database) {
  if (!database.good()) return;
  check(sqlite3_prepare_v3(database.handle(), sql.c_str(), static_cast<int>(sql.size()),
                           SQLITE_PREPARE_PERSISTENT, &statement_, nullptr));
}

bool Statement::row() {
  read_ = 0;
  if (!database_.good()) return false;
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) database_.note(code);
  return false;
}

void Statement::reset() {
  sqlite3_reset(statement_);
  bound_ = 0;
}

void Statement::get(std::string& value) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, read_));
  const int bytes = sqlite3_column_bytes(statement_, read_++);
  value.assign(text == nullptr ? "" : text, text == nullptr ? 0 : static_cast<size_t>(bytes));
}

void Statement::get_bytes(std::string& value) {
  const auto* blob = static_cast<const char*>(sqlite3_column_blob(statement_, read_));
  const int bytes = sqlite3_column_bytes(statement_, read_++);
  value.assign(blob == nullptr ? "" : blob, blob == nullptr ? 0 : static_cast<size_t>(bytes));
}

}  // namespace stepscope::store
