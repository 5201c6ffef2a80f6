#include "store/read.h"

#include <algorithm>
#include <functional>
#include <map>

#include "store/rows.h"
#include "store/schema.h"

namespace stepscope::store {
namespace {

// Out of line: g++ 12 sees the row's optionals uninitialised where it inlines this.
[[gnu::noinline]] OccurrenceStats::Recent recent_of(const OccurrenceRow& row) {
  return {row.step.value_or(-1), row.begin_ns.value_or(0), row.duration_ns};
}

// The user's phases of rows that are read in the order of their ids, beside them: id, name, ns.
template <typename Ns>
class UserPhases {
 public:
  UserPhases(Database& database, const std::string& sql) : select_(database, sql) { advance(); }

  template <typename Use>
  void each(int64_t id, Use use) {
    while (more_ && id_ < id) advance();
    for (; more_ && id_ == id; advance()) use(name_, ns_);
  }

 private:
  void advance() {
    more_ = select_.row();
    if (!more_) return;
    select_.get(id_);
    select_.get(name_);
    select_.get(ns_);
  }

  Statement select_;
  bool more_ = false;
  int64_t id_ = 0;
  std::string name_;
  Ns ns_ = 0;
};

class Reader {
 public:
  Reader(Database& database, RunHistory& run)
      : database_(database), run_(run), version_(database.integer("PRAGMA user_version")) {}

  void read(RawSteps raw) {
    read_run();
    read_nodes();
    read_ranks();
    if (raw == RawSteps::kAll)
      read_steps("", [&](StepSample& sample) {
        RankHistory* r = rank(sample.rank);
        if (r != nullptr) r->raw.push_back(std::move(sample));
      });
    read_rollups();
    read_occurrences();
    read_outside();
    read_memory();
    for (RankHistory& rank : run_.ranks) rank.see_phases();
  }

  KeptList<StepSample> steps_of(int32_t rank) {
    KeptList<StepSample> steps;
    read_steps("BETWEEN " + std::to_string(series_base(rank, 0)) + " AND " +
                   std::to_string(series_base(rank, 1) - 1),
               [&](StepSample& sample) { steps.push_back(std::move(sample)); });
    return steps;
  }

 private:
  template <typename Describe, typename Use>
  void each(const std::string& from, Describe describe, Use use) {
    Statement select(database_, "SELECT " + present(names_of(describe).list) + " FROM " + from);
    while (select.row()) {
      Extractor extract{select};
      describe(extract);
      use();
    }
  }

  // Reading changes nothing: an older file lacks the newest columns.
  std::string present(std::string list) const {
    const auto since = [&](int64_t version, std::initializer_list<std::string_view> columns) {
      if (version_ >= version) return;
      for (const std::string_view column : columns)
        if (const size_t at = list.find(column); at != std::string::npos)
          list.replace(at, column.size(), ", NULL");
    };
    since(3, {", syncs", ", cpu_wait_share"});
    since(4, {", recompute_ns", ", recompute_mean_ns"});
    since(5, {", disk_wait_share", ", cpu_steal_share", ", minor_faults_per_s",
              ", major_faults_per_s"});
    return list;
  }

  void texts(const char* sql, std::vector<std::string>& out) {
    Statement select(database_, sql);
    while (select.row()) select.get(out.emplace_back());
  }

  RankHistory* rank(int32_t number) {
    const auto it = ranks_.find(number);
    return it == ranks_.end() ? nullptr : &run_.ranks[it->second];
  }

  void read_run() {
    std::string state = "live";
    each(
        "runs",
        [&](auto& v) {
          run_columns(v, run_);
          v("state", state);
        },
        [] {});
    run_.live = state != "ended";
    texts("SELECT argument FROM command ORDER BY position", run_.command);
    texts("SELECT text FROM events WHERE kind = 'notice' ORDER BY id", run_.notices);
    texts("SELECT text FROM events WHERE kind = 'unobserved' ORDER BY id", run_.unobserved);
    if (std::vector<std::string> stored; version_ >= 3) {
      texts("SELECT text FROM comparison", stored);
      if (!stored.empty()) run_.comparison = comparison_from_text(stored[0]).value_or(Comparison{});
    }
    if (std::vector<std::string> stored; version_ >= 4) {
      texts("SELECT text FROM loaders ORDER BY rank, loader", stored);
      for (const std::string& text : stored)
        if (auto loader = loader_from_text(text)) run_.loaders.push_back(std::move(*loader));
    }
    std::string key, value;
    each(
        "settings",
        [&](auto& v) {
          v("key", key);
          v("value", value);
        },
        [&] {
          // A setting that another version had does not matter to this one.
          if (!run_.settings.set(key, value)) return;
        });
  }

  void read_nodes() {
    NodeHistory node;
    each(
        "nodes ORDER BY position", [&](auto& v) { node_columns(v, node); },
        [&] { run_.nodes.push_back(node); });
    size_t position = 0;
    for (NodeHistory& n : run_.nodes) {
      node_gauges(
          [&](std::string_view name, Gauge& gauge) {
            Statement select(database_,
                             "SELECT sum, peak, reading_count, not_measured FROM gauges "
                             "WHERE node_position = ? AND name = ?");
            select.bind(static_cast<int64_t>(position));
            select.bind(name);
            if (select.row()) gauge_columns(Extractor{select}, gauge);
          },
          n);
      ++position;
    }
  }

  void read_ranks() {
    RankHistory rank;
    each(
        "ranks ORDER BY rank", [&](auto& v) { rank_columns(v, rank); },
        [&] {
          ranks_[rank.rank] = run_.ranks.size();
          run_.ranks.push_back(rank);
        });
  }

  template <typename Keep>
  void read_steps(const std::string& where, Keep keep) {
    UserPhases<int64_t> users(database_, "SELECT step_id, name, time_ns FROM step_user_phases " +
                                             (where.empty() ? "" : "WHERE step_id " + where) +
                                             " ORDER BY step_id, position");
    Key key;
    StepSample sample;
    each(
        "steps " + (where.empty() ? "" : "WHERE id " + where) + " ORDER BY id",
        [&](auto& v) { step_columns(v, key, sample); },
        [&] {
          sample.user_phase_ns.clear();
          users.each(key.id, [&](const std::string& name, int64_t ns) {
            sample.user_phase_ns.emplace_back(name, ns);
          });
          keep(sample);
        });
  }

  void read_rollups() {
    Key key;
    StepBlock block;
    std::array<std::optional<double>, kPartNames.size()> parts;
    UserPhases<double> users(
        database_, "SELECT rollup_id, name, mean_ns FROM rollup_user_phases ORDER BY rollup_id");
    each(
        "rollups ORDER BY id", [&](auto& v) { rollup_columns(v, key, block, parts); },
        [&] {
          RankHistory* r = rank(key.rank);
          if (r == nullptr || key.sub < 0 || key.sub >= kMaxLevels) return;
          const auto level = static_cast<size_t>(key.sub);
          if (r->rollups.size() <= level) r->rollups.resize(level + 1);
          block.part_mean_ns.clear();
          for (size_t i = 0; i < parts.size(); ++i)
            if (parts[i]) block.part_mean_ns[std::string(kPartNames[i])] = *parts[i];
          block.user_mean_ns.clear();
          users.each(key.id,
                     [&](const std::string& name, double ns) { block.user_mean_ns[name] = ns; });
          r->rollups[level].push_back(block);
        });
  }

  OccurrenceStats* occurrences(int32_t number, const std::string& kind) {
    RankHistory* r = rank(number);
    const auto* it = std::find(kOccurrenceNames.begin(), kOccurrenceNames.end(), kind);
    if (r == nullptr || it == kOccurrenceNames.end()) return nullptr;
    return &r->occurrences[static_cast<size_t>(it - kOccurrenceNames.begin())];
  }

  void read_occurrences() {
    Key key;
    std::string kind;
    OccurrenceRow row;
    each(
        "occurrences ORDER BY id", [&](auto& v) { occurrence_columns(v, key, kind, row); },
        [&] {
          if (OccurrenceStats* stats = occurrences(key.rank, kind))
            stats->recent.push_back(recent_of(row));
        });
    int64_t count = 0, total = 0;
    each(
        "occurrence_totals",
        [&](auto& v) {
          v("rank", key.rank);
          v("kind", kind);
          v("occurrence_count", count);
          v("total_ns", total);
        },
        [&] {
          if (OccurrenceStats* stats = occurrences(key.rank, kind)) {
            stats->count = count;
            stats->total_ns = total;
          }
        });
  }

  void read_outside() {  // RankHistory::outside_ns
    Statement select(database_,
                     "SELECT rank, sum(duration_ns) FROM occurrences JOIN ranks USING (rank) "
                     "WHERE begin_ns + duration_ns <= first_begin_ns OR begin_ns >= last_end_ns "
                     "GROUP BY rank");
    int32_t number = 0;
    int64_t outside_ns = 0;
    while (select.row()) {
      select.get(number);
      select.get(outside_ns);
      if (RankHistory* r = rank(number)) r->outside_ns = outside_ns;
    }
  }

  void read_memory() {
    Key key;
    MemorySample sample;
    each(
        "memory ORDER BY id", [&](auto& v) { memory_columns(v, key, sample); },
        [&] {
          if (RankHistory* r = rank(key.rank)) r->memory.push_back(sample);
        });
  }

  Database& database_;
  RunHistory& run_;
  int64_t version_;
  std::map<int32_t, size_t> ranks_;
};

}  // namespace

Result<RunHistory> read_history(Database& database, const std::string& run_folder, RawSteps raw) {
  RunHistory run;
  run.folder = run_folder;
  Reader(database, run).read(raw);
  if (!database.good()) return database.take_error("read");
  return run;
}

Result<KeptList<StepSample>> read_steps(Database& database, int32_t rank) {
  RunHistory none;
  auto steps = Reader(database, none).steps_of(rank);
  if (!database.good()) return database.take_error("read");
  return steps;
}

Result<RunHistory> read_database(Database& database, const std::string& run_folder) {
  const Result<Content> content = identify(database);
  if (!content) return content.error();
  RunHistory empty;  // killed before its first commit
  empty.folder = run_folder;
  empty.live = true;
  if (*content != Content::kRun) return empty;
  if (!database.run("BEGIN")) return database.take_error("read");
  auto run = read_history(database, run_folder, RawSteps::kAll);
  database.run(run ? "COMMIT" : "ROLLBACK");
  if (!database.good()) {
    const Error error = database.take_error("read");
    if (run) return error;
  }
  return run;
}

Result<std::vector<SegmentPosition>> read_positions(Database& database) {
  std::vector<SegmentPosition> positions;
  Statement select(database,
                   "SELECT pid, nonce, next_index, state FROM positions ORDER BY pid, nonce");
  while (select.row()) {
    SegmentPosition& p = positions.emplace_back();
    select.get(p.pid);
    select.get(p.nonce);
    select.get(p.next_index);
    select.get_bytes(p.state);
  }
  if (!database.good()) return database.take_error("read");
  return positions;
}

}  // namespace stepscope::store
