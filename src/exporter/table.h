// A run as a table: a row a rank and step that is kept one by one; docs/export.md names the columns.
//
// Thread safety: one owner. Invariants: the steps of one rank are in memory at a time, beside a few of every rank; they
// are asked for twice, and must be the same both times. What was not measured is empty, never 0.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "base/result.h"
#include "exporter/clocks.h"
#include "exporter/output.h"
#include "model/history.h"

namespace stepscope::exporter {

// Of the rank with this number, oldest first: what RankHistory::raw would be.
using StepsOf = std::function<Result<KeptList<StepSample>>(int32_t rank)>;

class Table {
 public:
  // run: without its raw steps.
  static Result<Table> of(RunHistory run, StepsOf steps);

  // RFC 4180: a line of names, and the rows.
  Status write_csv(Output& out) const;
  Status write_rows(Output& out) const;
  // [["rank","int32"],...]: names, and types as Arrow calls them.
  std::string columns_json() const;

 private:
  struct Column {
    std::string name;
    const char* type;
  };
  Table(RunHistory run, StepsOf steps, std::set<std::string> users);
  std::vector<Column> columns() const;
  void add_row(size_t position, const StepSample& step, std::string& line) const;

  RunHistory run_;
  StepsOf steps_;
  std::set<std::string> users_;  // the user's phases that are no other name for one of ours
  Clocks clocks_;
  std::array<bool, kPhaseCount> measured_;
};

}  // namespace stepscope::exporter
