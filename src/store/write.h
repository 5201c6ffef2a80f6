// Writes a history into the tables: what is new since the last time, and nothing else.
//
// Thread safety: one owner. Lifetime: shorter than the database's; after a rolled back transaction
// make a new one, which reads from the tables where each series stands. Errors are the database's
// sticky one.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "store/database.h"
#include "store/rows.h"

namespace stepscope::store {

// What is stored of one list that grows at the back and is trimmed at the front.
struct Series {
  int64_t first = 0, next = 0;    // row numbers [first, next)
  std::array<int64_t, 2> last{};  // names the newest row among the items of the history
  int64_t total = -1;             // occurrences: how many there were ever; -1 not known
  int64_t count() const { return next - first; }
};

class SeriesTable {
 public:
  // identity: two columns that name a row; delete_children: of the rows [?, ?) of a table that
  // belongs to this one
  SeriesTable(Database& database, const std::string& table, const std::string& identity,
              const std::string& insert, const char* delete_children = nullptr);

  Series& series(int64_t base) { return series_[base]; }
  void remove(int64_t base, int64_t from, int64_t to);  // rows [from, to)
  void trim(int64_t base, int64_t keep);                // to the newest
  Statement& insert() { return insert_; }

  // Makes the rows of `base` equal to `items`: appends what is new, trims what is gone (from the
  // front), or, where that does not lead there, writes them anew. write(id, item) inserts a row.
  template <typename Items, typename Identity, typename Write>
  void mirror(int64_t base, const Items& items, bool trims_front, Identity identity, Write write) {
    Series& s = series_[base];
    const auto size = static_cast<int64_t>(items.size());
    int64_t from = s.count() == 0 ? 0 : size;
    while (from > 0 && identity(items[static_cast<size_t>(from - 1)]) != s.last) --from;
    const int64_t after = s.count() + size - from;
    if ((from == 0 && s.count() > 0) || after < size || (after > size && !trims_front)) {
      remove(base, s.first, s.next);
      s.first = s.next;
      from = 0;
    }
    for (; from < size; ++from) write(base + s.next++, items[static_cast<size_t>(from)]);
    if (size > 0) s.last = identity(items.back());
    trim(base, size);
  }

 private:
  std::map<int64_t, Series> series_;  // by base
  Statement insert_, delete_;
  std::optional<Statement> delete_children_;
};

class Writer {
 public:
  explicit Writer(Database& database);

  // Inside a transaction of the caller's.
  void write(const RunHistory& run, const Batch& batch, bool ended);
  void write_findings(const std::vector<Finding>& findings);
  void write_summary(std::string_view bytes);  // empty: takes away what was there

 private:
  void write_run(const RunHistory& run, bool ended);
  void write_loaders(const std::vector<LoaderHistory>& loaders);
  void write_nodes(const std::vector<NodeHistory>& nodes);
  void write_rank(const RankHistory& rank);
  void write_occurrences(const RankHistory& rank);
  void forget_rank(int32_t rank);

  Database& database_;
  SeriesTable steps_, rollups_, occurrences_, memory_;
  Statement insert_run_, delete_run_, insert_rank_, insert_totals_, insert_node_, insert_gauge_,
      insert_position_, insert_loader_;
  Statement insert_step_user_, insert_rollup_user_;
  std::set<int32_t> ranks_;                                                 // with a row
  std::optional<std::vector<std::string>> command_, notices_, unobserved_;  // as written
  std::optional<std::map<std::string, std::string>> settings_;
  std::optional<Comparison> comparison_;
  std::map<std::pair<int32_t, int32_t>, std::string> loaders_;  // by rank and number
};

}  // namespace stepscope::store
