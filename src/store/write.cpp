#include "store/write.h"

#include <algorithm>
#include <utility>

namespace stepscope::store {
namespace {

template <typename Describe>
std::string insert_sql(const std::string& table, Describe describe, const std::string& more = "") {
  return "INSERT OR REPLACE INTO " + table + " VALUES (" + names_of(describe).marks + more + ")";
}

std::string insert_step_sql() {
  return insert_sql("steps", [](auto& v) {
    const Key key;
    const StepSample step;
    step_columns(v, key, step);
  });
}
using Parts = std::array<std::optional<double>, kPartNames.size()>;
std::string insert_rollup_sql() {
  return insert_sql("rollups", [](auto& v) {
    const Key key;
    const StepBlock block;
    const Parts parts;
    rollup_columns(v, key, block, parts);
  });
}
std::string insert_occurrence_sql() {
  return insert_sql("occurrences", [](auto& v) {
    const Key key;
    const std::string_view kind;
    const OccurrenceRow row;
    occurrence_columns(v, key, kind, row);
  });
}
std::string insert_memory_sql() {
  return insert_sql("memory", [](auto& v) {
    const Key key;
    const MemorySample sample;
    memory_columns(v, key, sample);
  });
}

}  // namespace

SeriesTable::SeriesTable(Database& database, const std::string& table, const std::string& identity,
                         const std::string& insert, const char* delete_children)
    : insert_(database, insert),
      delete_(database, "DELETE FROM " + table + " WHERE id >= ? AND id < ?") {
  if (delete_children != nullptr) delete_children_.emplace(database, delete_children);
  constexpr int64_t span = int64_t{1} << 32;
  Statement stand(database,
                  "SELECT id >> 32, min(id), max(id) FROM " + table + " GROUP BY id >> 32");
  Statement last(database, "SELECT " + identity + " FROM " + table + " WHERE id = ?");
  int64_t high = 0, min_id = 0, max_id = 0;
  while (stand.row()) {
    stand.get(high);
    stand.get(min_id);
    stand.get(max_id);
    const int64_t base = high * span;
    Series& s = series_[base];
    s.first = min_id - base;
    s.next = max_id - base + 1;
    last.bind(max_id);
    if (last.row()) {
      last.get(s.last[0]);
      last.get(s.last[1]);
    }
    last.reset();
  }
}

void SeriesTable::remove(int64_t base, int64_t from, int64_t to) {
  if (from >= to) return;
  delete_.run(base + from, base + to);
  if (delete_children_) delete_children_->run(base + from, base + to);
}

void SeriesTable::trim(int64_t base, int64_t keep) {
  Series& s = series_[base];
  if (s.count() <= keep) return;
  remove(base, s.first, s.next - keep);
  s.first = s.next - keep;
}

Writer::Writer(Database& database)
    : database_(database),
      steps_(database, "steps", "step, begin_ns", insert_step_sql(),
             "DELETE FROM step_user_phases WHERE step_id >= ? AND step_id < ?"),
      rollups_(database, "rollups", "first_step, begin_ns", insert_rollup_sql(),
               "DELETE FROM rollup_user_phases WHERE rollup_id >= ? AND rollup_id < ?"),
      occurrences_(database, "occurrences", "step, begin_ns", insert_occurrence_sql()),
      memory_(database, "memory", "step, mono_ns", insert_memory_sql()),
      insert_run_(database, insert_sql(
                                "runs",
                                [](auto& v) {
                                  const RunHistory run;
                                  run_columns(v, run);
                                },
                                ", ?")),
      delete_run_(database, "DELETE FROM runs"),
      insert_rank_(database, insert_sql("ranks",
                                        [](auto& v) {
                                          const RankHistory rank;
                                          rank_columns(v, rank);
                                        })),
      insert_totals_(database, "INSERT OR REPLACE INTO occurrence_totals VALUES (?, ?, ?, ?)"),
      insert_node_(database, "INSERT OR REPLACE INTO nodes VALUES (?, ?, ?, ?, ?)"),
      insert_gauge_(database, "INSERT OR REPLACE INTO gauges VALUES (?, ?, ?, ?, ?, ?)"),
      insert_position_(database, "INSERT OR REPLACE INTO positions VALUES (?, ?, ?, ?)"),
      insert_loader_(database, "INSERT OR REPLACE INTO loaders VALUES (?, ?, ?, ?)"),
      insert_step_user_(database, "INSERT INTO step_user_phases VALUES (?, ?, ?, ?)"),
      insert_rollup_user_(database, "INSERT INTO rollup_user_phases VALUES (?, ?, ?)") {
  Statement ranks(database, "SELECT rank FROM ranks");
  for (int32_t rank = 0; ranks.row();) {
    ranks.get(rank);
    ranks_.insert(rank);
  }
  Statement totals(database, "SELECT rank, kind, occurrence_count FROM occurrence_totals");
  std::string kind;
  int32_t rank = 0;
  int64_t count = 0;
  while (totals.row()) {
    totals.get(rank);
    totals.get(kind);
    totals.get(count);
    for (int i = 0; i < kOccurrenceKinds; ++i)
      if (kOccurrenceNames[static_cast<size_t>(i)] == kind)
        occurrences_.series(series_base(rank, i)).total = count;
  }
}

void Writer::write(const RunHistory& run, const Batch& batch, bool ended) {
  write_run(run, ended);
  write_nodes(run.nodes);
  write_loaders(run.loaders);
  std::set<int32_t> present;
  for (const RankHistory& rank : run.ranks) {
    present.insert(rank.rank);
    write_rank(rank);
    write_occurrences(rank);
  }
  for (const int32_t rank : ranks_)
    if (!present.contains(rank)) forget_rank(rank);
  ranks_ = std::move(present);
  for (const SegmentPosition& p : batch.positions)
    insert_position_.run(p.pid, p.nonce, p.next_index, Bytes{p.state});
}

void Writer::write_run(const RunHistory& run, bool ended) {
  delete_run_.run();
  run_columns(Binder{insert_run_}, run);
  insert_run_.run(ended ? "ended" : "live");

  if (command_ != run.command) {
    database_.run("DELETE FROM command");
    Statement insert(database_, "INSERT INTO command VALUES (?, ?)");
    int64_t position = 0;
    for (const std::string& argument : run.command) insert.run(position++, argument);
    command_ = run.command;
  }
  if (auto effective = run.settings.effective(); settings_ != effective) {
    database_.run("DELETE FROM settings");
    Statement insert(database_, "INSERT INTO settings VALUES (?, ?)");
    for (const auto& [key, value] : effective) insert.run(key, value);
    settings_ = std::move(effective);
  }
  if (comparison_ != run.comparison) {
    database_.run("DELETE FROM comparison");
    Statement(database_, "INSERT INTO comparison VALUES (?)").run(to_text(run.comparison));
    comparison_ = run.comparison;
  }
  if (notices_ != run.notices || unobserved_ != run.unobserved) {
    database_.run("DELETE FROM events");
    Statement insert(database_, "INSERT INTO events (kind, text) VALUES (?, ?)");
    for (const std::string& text : run.notices) insert.run("notice", text);
    for (const std::string& text : run.unobserved) insert.run("unobserved", text);
    notices_ = run.notices;
    unobserved_ = run.unobserved;
  }
}

// None is ever taken out of a run.
void Writer::write_loaders(const std::vector<LoaderHistory>& loaders) {
  for (const LoaderHistory& loader : loaders) {
    std::string text = to_text(loader);
    std::string& written = loaders_[{loader.rank, loader.loader}];
    if (written == text) continue;
    insert_loader_.run(loader.rank, loader.loader, loader.dataset, text);
    written = std::move(text);
  }
}

void Writer::write_nodes(const std::vector<NodeHistory>& nodes) {
  int64_t position = 0;
  for (const NodeHistory& node : nodes) {
    insert_node_.bind(position);
    node_columns(Binder{insert_node_}, node);
    insert_node_.run();
    node_gauges(
        [&](std::string_view name, const Gauge& gauge) {
          insert_gauge_.bind(position);
          insert_gauge_.bind(name);
          gauge_columns(Binder{insert_gauge_}, gauge);
          insert_gauge_.run();
        },
        node);
    ++position;
  }
}

void Writer::write_rank(const RankHistory& rank) {
  rank_columns(Binder{insert_rank_}, rank);
  insert_rank_.run();

  using Identity = std::array<int64_t, 2>;
  steps_.mirror(
      series_base(rank.rank, 0), rank.raw, true,
      [](const StepSample& s) { return Identity{s.step, s.begin_ns}; },
      [&](int64_t id, const StepSample& s) {
        const Key key{id, rank.rank, 0};
        step_columns(Binder{steps_.insert()}, key, s);
        steps_.insert().run();
        int64_t position = 0;
        for (const auto& [name, ns] : s.user_phase_ns)
          insert_step_user_.run(id, position++, name, ns);
      });

  const auto write_block = [&](int64_t id, int level, const StepBlock& b) {
    const Key key{id, rank.rank, level};
    Parts parts;
    for (size_t i = 0; i < parts.size(); ++i)
      if (const auto it = b.part_mean_ns.find(std::string(kPartNames[i]));
          it != b.part_mean_ns.end())
        parts[i] = it->second;
    rollup_columns(Binder{rollups_.insert()}, key, b, parts);
    rollups_.insert().run();
    for (const auto& [name, ns] : b.user_mean_ns) insert_rollup_user_.run(id, name, ns);
  };
  for (int level = 0; level < kMaxLevels && level < static_cast<int>(rank.rollups.size()); ++level)
    rollups_.mirror(
        series_base(rank.rank, level), rank.rollups[static_cast<size_t>(level)], true,
        [](const StepBlock& b) { return Identity{b.first_step, b.begin_ns}; },
        [&](int64_t id, const StepBlock& b) { write_block(id, level, b); });

  memory_.mirror(
      series_base(rank.rank, 0), rank.memory, false,
      [](const MemorySample& m) { return Identity{m.step, m.mono_ns}; },
      [&](int64_t id, const MemorySample& m) {
        const Key key{id, rank.rank, 0};
        memory_columns(Binder{memory_.insert()}, key, m);
        memory_.insert().run();
      });
}

void Writer::write_occurrences(const RankHistory& rank) {
  for (int kind = 0; kind < kOccurrenceKinds; ++kind) {
    const int64_t base = series_base(rank.rank, kind);
    const OccurrenceStats& stats = rank.occurrences[static_cast<size_t>(kind)];
    const std::string_view name = kOccurrenceNames[static_cast<size_t>(kind)];
    Series& series = occurrences_.series(base);
    const int64_t stored = std::max<int64_t>(series.total, 0);
    if (stats.count == stored) continue;

    const auto kept = static_cast<int64_t>(stats.recent.size());
    int64_t fresh = stats.count - stored;
    if (fresh < 0 || fresh >= kept) {  // another owner's, or more came than are kept
      occurrences_.remove(base, series.first, series.next);
      series.first = series.next;
      fresh = kept;
    }
    for (auto recent = stats.recent.end() - fresh; recent != stats.recent.end(); ++recent) {
      const Key key{base + series.next++, rank.rank, 0};
      OccurrenceRow row{.step = {}, .begin_ns = {}, .duration_ns = recent->duration_ns};
      if (recent->step >= 0) {
        row.step = recent->step;
        row.begin_ns = recent->begin_ns;
      }
      occurrence_columns(Binder{occurrences_.insert()}, key, name, row);
      occurrences_.insert().run();
    }
    occurrences_.trim(base, kept);
    insert_totals_.run(rank.rank, name, stats.count, stats.total_ns);
    series.total = stats.count;
  }
}

void Writer::forget_rank(int32_t rank) {
  for (int sub = 0; sub < kMaxLevels; ++sub)
    for (SeriesTable* table : {&steps_, &rollups_, &occurrences_, &memory_}) {
      table->trim(series_base(rank, sub), 0);
      table->series(series_base(rank, sub)).total = -1;
    }
  Statement(database_, "DELETE FROM ranks WHERE rank = ?").run(rank);
  Statement(database_, "DELETE FROM occurrence_totals WHERE rank = ?").run(rank);
}

void Writer::write_summary(std::string_view bytes) {
  database_.run("DELETE FROM summary");
  if (!bytes.empty()) Statement(database_, "INSERT INTO summary VALUES (?)").run(Bytes{bytes});
}

void Writer::write_findings(const std::vector<Finding>& findings) {
  database_.run("DELETE FROM findings");
  Statement insert(
      database_,
      "INSERT INTO findings VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
      "'[]', '[]', '[]')");
  Statement evidence(database_,
                     "UPDATE findings SET evidence = json_insert(evidence, '$[#]', "
                     "json_object('name', ?, 'value', ?, 'unit', ?)) WHERE position = ?");
  Statement not_measured(database_,
                         "UPDATE findings SET not_measured = json_insert(not_measured, '$[#]', ?) "
                         "WHERE position = ?");
  Statement advice(database_,
                   "UPDATE findings SET advice = json_insert(advice, '$[#]', json_object("
                   "'text', ?, 'gain', ?, 'check', ?, 'not_if', ?)) WHERE position = ?");
  static constexpr std::array kSeverity = {"info", "warning", "critical"};
  static constexpr std::array kScope = {"job", "node", "rank", "device", "worker"};
  int64_t position = 0;
  for (const Finding& f : findings) {
    insert.run(position, f.code, kSeverity[static_cast<size_t>(f.severity)], f.confidence,
               kScope[static_cast<size_t>(f.scope)], f.rank, f.node, f.device, f.worker, f.phase,
               f.pattern, f.cause, f.first_step, f.last_step, f.share, f.cost_ms_per_step,
               f.predicted_saving, f.title, f.ended);
    for (const Evidence& e : f.evidence) evidence.run(e.name, e.value, e.unit, position);
    for (const std::string& text : f.not_measured) not_measured.run(text, position);
    for (const Advice& a : f.advice) advice.run(a.text, a.gain, a.check, a.not_if, position);
    ++position;
  }
}

}  // namespace stepscope::store
