// The database of a run for who only reads it: in place, or in a private copy where SQLite may not make its shared
// memory beside a WAL database.
//
// Thread safety: one owner. Lifetime: a copy is removed with it. Invariant: the run's folder stays as it is.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "store/database.h"

namespace stepscope::store {

class ReadOnly {
 public:
  static Result<ReadOnly> open(const std::string& run_folder);
  ReadOnly(ReadOnly&&) noexcept;
  ReadOnly& operator=(ReadOnly&&) = delete;
  ~ReadOnly();

  Database& database();

 private:
  struct Impl;
  explicit ReadOnly(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

Status copy_file(const std::string& from, const std::string& to);

}  // namespace stepscope::store
