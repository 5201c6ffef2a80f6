#include "store/schema.h"

#include <sys/stat.h>

#include <type_traits>

#include "base/file.h"
#include "store/rows.h"

namespace stepscope::store {
namespace {

constexpr const char* sql_type(const double*) { return "REAL"; }
constexpr const char* sql_type(const std::vector<SyncPoint>*) { return "BLOB"; }
constexpr const char* sql_type(const std::string*) { return "TEXT"; }
constexpr const char* sql_type(const std::string_view*) { return "TEXT"; }
template <typename T>
  requires std::is_integral_v<T>
constexpr const char* sql_type(const T*) {
  return "INTEGER";
}
template <typename T>
constexpr const char* sql_type(const std::optional<T>*) {
  return sql_type(static_cast<const T*>(nullptr));
}

struct Declaration {
  std::string text;
  template <typename T>
  void operator()(std::string_view column, const T& value) {
    if (!text.empty()) text += ", ";
    text += std::string(column) + " " + sql_type(&value);
    if (column == "id") text += " PRIMARY KEY";
  }
};

std::string table(const char* name, const std::string& columns, const char* options = "") {
  return std::string("CREATE TABLE ") + name + "(" + columns + ")" + options + ";\n";
}

template <typename Describe>
std::string columns_of(Describe describe) {
  Declaration declaration;
  describe(declaration);
  return declaration.text;
}

std::string series_tables() {
  Key key;
  StepSample step;
  StepBlock block;
  std::array<std::optional<double>, kPartNames.size()> parts;
  OccurrenceRow occurrence;
  MemorySample memory;
  const std::string kind;
  return table("steps",
               columns_of([&](auto& v) { step_columns(v, key, step); }) +
                   ", step_time_ns INTEGER GENERATED ALWAYS AS (end_ns - begin_ns) VIRTUAL") +
         table("step_user_phases",
               "step_id INTEGER, position INTEGER, name TEXT, time_ns INTEGER, "
               "PRIMARY KEY (step_id, position)",
               " WITHOUT ROWID") +
         table("rollups", columns_of([&](auto& v) { rollup_columns(v, key, block, parts); })) +
         table("rollup_user_phases",
               "rollup_id INTEGER, name TEXT, mean_ns REAL, PRIMARY KEY (rollup_id, name)",
               " WITHOUT ROWID") +
         table("occurrences",
               columns_of([&](auto& v) { occurrence_columns(v, key, kind, occurrence); })) +
         table("memory", columns_of([&](auto& v) { memory_columns(v, key, memory); }));
}

// text: to_text(LoaderHistory)
std::string loaders_table() {
  return table("loaders",
               "rank INTEGER, loader INTEGER, dataset TEXT, text TEXT, PRIMARY KEY (rank, loader)",
               " WITHOUT ROWID");
}

std::string summary_table() { return table("summary", "bytes BLOB"); }

std::string all_tables() {
  RunHistory run;
  RankHistory rank;
  NodeHistory node;
  Gauge gauge;
  return table("runs", columns_of([&](auto& v) { run_columns(v, run); }) + ", state TEXT") +
         table("command", "position INTEGER PRIMARY KEY, argument TEXT") +
         table("settings", "key TEXT PRIMARY KEY, value TEXT") +
         table("ranks",
               columns_of([&](auto& v) { rank_columns(v, rank); }) + ", PRIMARY KEY (rank)") +
         series_tables() +
         table("occurrence_totals",
               "rank INTEGER, kind TEXT, occurrence_count INTEGER, total_ns INTEGER, "
               "PRIMARY KEY (rank, kind)") +
         table("nodes", "position INTEGER PRIMARY KEY, " +
                            columns_of([&](auto& v) { node_columns(v, node); })) +
         table("gauges", "node_position INTEGER, name TEXT, " + columns_of([&](auto& v) {
                           gauge_columns(v, gauge);
                         }) + ", PRIMARY KEY (node_position, name)") +
         table("comparison", "text TEXT") + loaders_table() +
         table("events", "id INTEGER PRIMARY KEY, kind TEXT, text TEXT") +
         table("findings",
               "position INTEGER PRIMARY KEY, code TEXT, severity TEXT, confidence TEXT, scope "
               "TEXT, rank INTEGER, "
               "node TEXT, device TEXT, worker TEXT, phase TEXT, pattern TEXT, cause TEXT, "
               "first_step INTEGER, "
               "last_step INTEGER, share REAL, cost_ms_per_step REAL, predicted_saving REAL, title "
               "TEXT, "
               "ended INTEGER, evidence TEXT, not_measured TEXT, advice TEXT") +
         summary_table() +
         table("positions",
               "pid INTEGER, nonce INTEGER, next_index INTEGER, state BLOB, "
               "PRIMARY KEY (pid, nonce)",
               " WITHOUT ROWID");
}

// SQLite fills a last page that was cut short with zeros and reads on. With a WAL the main file may
// lag behind.
bool cut_short(Database& database) {
  const int64_t bytes =
      database.integer("PRAGMA page_count") * database.integer("PRAGMA page_size");
  struct stat file;
  return !exists(database.path() + "-wal") && stat(database.path().c_str(), &file) == 0 &&
         file.st_size < bytes;
}

}  // namespace

Result<Content> identify(Database& database) {
  const int64_t version = database.integer("PRAGMA user_version");
  const int64_t application = database.integer("PRAGMA application_id");
  const int64_t tables = database.integer("SELECT count(*) FROM sqlite_schema");
  if (!database.good()) return database.take_error("read");
  if (version == 0 && application == 0 && tables == 0) return Content::kEmpty;
  if (application != kApplicationId)
    return Error{
        "could not read " + database.path() + ": it is a database, but not one of stepscope",
        set_aside(database.path())};
  if (version > kSchemaVersion)
    return Error{"could not read " + database.path() +
                     ": it was written by a newer stepscope (schema " + std::to_string(version) +
                     ", this one knows " + std::to_string(kSchemaVersion) + ")",
                 "pip install --upgrade stepscope"};
  if (cut_short(database))
    return Error{"could not read " + database.path() + ": the file was cut short",
                 set_aside(database.path())};
  return Content::kRun;
}

Status create_tables(Database& database) {
  const std::string sql = "BEGIN IMMEDIATE;\n" + all_tables() +
                          "PRAGMA application_id = " + std::to_string(kApplicationId) +
                          ";\nPRAGMA user_version = " + std::to_string(kSchemaVersion) +
                          ";\nCOMMIT;";
  if (database.run(sql.c_str())) return ok();
  Error error = database.take_error("create");
  database.run("ROLLBACK");
  (void)database.take_error("roll back");
  return error;
}

Status upgrade(Database& database) {
  const int64_t version = database.integer("PRAGMA user_version");
  if (database.good() && version == kSchemaVersion) return ok();
  std::string sql = "BEGIN IMMEDIATE;\n";
  if (version < 2) sql += "ALTER TABLE positions ADD COLUMN state BLOB;\n";
  if (version < 3)
    sql +=
        "ALTER TABLE steps ADD COLUMN syncs BLOB;\n"
        "ALTER TABLE memory ADD COLUMN cpu_wait_share REAL;\n" +
        table("comparison", "text TEXT");
  if (version < 4)
    sql +=
        "ALTER TABLE steps ADD COLUMN recompute_ns INTEGER;\n"
        "ALTER TABLE rollups ADD COLUMN recompute_mean_ns REAL;\n" +
        loaders_table();
  if (version < 5) {
    sql += summary_table();
    for (const char* column :
         {"disk_wait_share", "cpu_steal_share", "minor_faults_per_s", "major_faults_per_s"})
      sql += std::string("ALTER TABLE memory ADD COLUMN ") + column + " REAL;\n";
  }
  sql += "PRAGMA user_version = " + std::to_string(kSchemaVersion) + ";\nCOMMIT;";
  if (database.run(sql.c_str())) return ok();
  Error error = database.take_error("upgrade");
  database.run("ROLLBACK");
  (void)database.take_error("roll back");
  return error;
}

}  // namespace stepscope::store
