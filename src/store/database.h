// A SQLite connection and its prepared statements, with one sticky error.
//
// Thread safety: one owner, one thread (opened without SQLite's mutex). Lifetime: statements end
// before their database. Invariant: the first failure is kept until take_error(); while it stands
// every statement is a no-op, so that a whole transaction is written as plain lines and judged once
// at its end.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace stepscope::store {

class Database {
 public:
  enum class Mode { kReadOnly, kReadWrite };
  static Result<Database> open(const std::string& path, Mode mode);

  Database(Database&& other) noexcept;
  Database& operator=(Database&& other) noexcept;
  ~Database();

  bool run(const char* sql);         // no result wanted; any number of statements
  int64_t integer(const char* sql);  // first column of the first row; 0 when there is none
  bool good() const { return error_ == SQLITE_OK; }
  void note(int code);                       // keeps the first failure
  Error take_error(std::string_view doing);  // "could not <doing> <path>: why"; clears it
  int code() const { return error_; }        // the failure that stands, SQLITE_OK if none

  sqlite3* handle() const { return handle_; }
  const std::string& path() const { return path_; }

 private:
  Database(sqlite3* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  sqlite3* handle_ = nullptr;
  std::string path_;
  int error_ = SQLITE_OK;
  int system_error_ = 0;
  std::string text_;
};

std::string set_aside(
    const std::string& path);  // the hint for a file that is not what it should be

// What a SQLite failure on `path` means to the user.
Error database_error(std::string_view doing, const std::string& path, int code, int system_error,
                     std::string_view text);

struct Bytes {  // bound as a BLOB: not text in any encoding
  std::string_view bytes;
};

class Statement {
 public:
  Statement(Database& database, const std::string& sql);
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement() { sqlite3_finalize(statement_); }

  // Values for the next `?`, in order.
  void bind(int64_t value) { check(sqlite3_bind_int64(statement_, ++bound_, value)); }
  void bind(int32_t value) { bind(int64_t{value}); }
  void bind(uint32_t value) { bind(int64_t{value}); }
  void bind(uint64_t value) { bind(static_cast<int64_t>(value)); }  // the same 64 bits
  void bind(bool value) { bind(int64_t{value}); }
  void bind(double value) { check(sqlite3_bind_double(statement_, ++bound_, value)); }
  void bind(std::string_view value) {  // must live until run() or the last row()
    check(sqlite3_bind_text(statement_, ++bound_, value.data(), static_cast<int>(value.size()),
                            SQLITE_STATIC));
  }
  void bind(Bytes value) {  // likewise
    check(sqlite3_bind_blob64(statement_, ++bound_, value.bytes.data(), value.bytes.size(),
                              SQLITE_STATIC));
  }
  void bind_copy(Bytes value) {  // need not live on
    check(sqlite3_bind_blob64(statement_, ++bound_, value.bytes.data(), value.bytes.size(),
                              SQLITE_TRANSIENT));
  }
  void bind(const std::string& value) { bind(std::string_view(value)); }
  void bind(const char* value) { bind(std::string_view(value)); }
  template <typename T>
  void bind(const std::optional<T>& value) {
    if (value)
      bind(*value);
    else
      check(sqlite3_bind_null(statement_, ++bound_));
  }

  // Binds, executes, resets.
  template <typename... Args>
  void run(const Args&... args) {
    (bind(args), ...);
    row();
    reset();
  }

  bool row();    // moves to the next row; false at the end or after a failure
  void reset();  // for the next use

  // Columns of the row, in order.
  void get(int64_t& value) { value = sqlite3_column_int64(statement_, read_++); }
  void get(int32_t& value) {
    value = static_cast<int32_t>(sqlite3_column_int64(statement_, read_++));
  }
  void get(uint32_t& value) {
    value = static_cast<uint32_t>(sqlite3_column_int64(statement_, read_++));
  }
  void get(uint64_t& value) {
    value = static_cast<uint64_t>(sqlite3_column_int64(statement_, read_++));
  }
  void get(bool& value) { value = sqlite3_column_int64(statement_, read_++) != 0; }
  void get(double& value) { value = sqlite3_column_double(statement_, read_++); }
  void get(std::string& value);
  void get_bytes(std::string& value);
  template <typename T>
  void get(std::optional<T>& value) {
    if (sqlite3_column_type(statement_, read_) == SQLITE_NULL) {
      value.reset();
      ++read_;
    } else {
      get(value.emplace());
    }
  }

 private:
  void check(int code) {
    if (code != SQLITE_OK) database_.note(code);
  }
  Database& database_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
  int read_ = 0;
};

}  // namespace stepscope::store
