#include "report/heatmap.h"

#include <algorithm>
#include <map>

#include "report/lateness.h"
#include "report/phases.h"
#include "report/series.h"

namespace stepscope::report {
namespace {

constexpr StepRange kNoSteps{0, -1};

struct Cell {
  double sum_ns = 0, weight = 0;
};

class Builder {
 public:
  Builder(const RunHistory& run, const HeatmapQuery& query)
      : run_(run),
        query_(query),
        pieces_(run),
        late_(run, query.value == "late" ? asked(query, pieces_.all()) : kNoSteps) {}

  Heatmap build() {
    out_.value = query_.value;
    out_.by_node = query_.by_node;
    make_columns();
    make_rows();
    if (!out_.first_step.empty()) {
      for (size_t i = 0; i < run_.ranks.size(); ++i) fill(i);
      if (is_late_ && late_.knows_own()) fill_own_lateness();
    }
    finish();
    return std::move(out_);
  }

 private:
  static StepRange asked(const HeatmapQuery& query, const StepRange& all) {
    return {std::max(query.range.from, all.from), std::min(query.range.to, all.to)};
  }

  void make_columns() {
    range_ = asked(query_, pieces_.all());
    if (range_.to < range_.from) return;
    width_ = column_width(range_, query_.columns);
    base_ = range_.from - range_.from % width_;
    for (int64_t first = base_; first <= range_.to; first += width_) {
      out_.first_step.push_back(std::max(first, range_.from));
      out_.last_step.push_back(std::min(first + width_ - 1, range_.to));
    }
  }

  void make_rows() {
    std::map<std::string, size_t> nodes;
    for (const RankHistory& rank : run_.ranks) {
      if (query_.by_node) {
        const auto [entry, fresh] = nodes.try_emplace(rank.node, out_.rows.size());
        row_of_.push_back(entry->second);
        if (!fresh) {
          ++out_.rows[entry->second].ranks;
          continue;
        }
      } else {
        row_of_.push_back(out_.rows.size());
      }
      Heatmap::Row& row = out_.rows.emplace_back();
      if (!query_.by_node) row.rank = rank.rank;
      row.node = rank.node;
    }
    out_.of = std::ssize(out_.rows);
    cells_.assign(out_.rows.size(), std::vector<Cell>(out_.first_step.size()));
    if (is_late_) own_.assign(run_.ranks.size(), std::vector<Cell>(out_.first_step.size()));
  }

  std::optional<double> value_of(const Piece& piece) const {
    if (query_.value == "total") return piece.ns(kTotal);
    double sum_ns = 0;
    if (const auto phase = phase_from_name(query_.value)) {
      if (!measured_[static_cast<size_t>(*phase)]) return std::nullopt;
      sum_ns = piece.ns(static_cast<size_t>(*phase));
    }
    piece.each_user([&](const std::string& name, double ns) {
      if (name == query_.value) sum_ns += ns;
    });
    return sum_ns;
  }

  void fill(size_t position) {
    for (const Piece& piece : pieces_.of(position, range_)) {
      const int64_t step = std::clamp(piece.first_step, range_.from, range_.to);
      const auto column = static_cast<size_t>((step - base_) / width_);
      const auto weight = static_cast<double>(piece.count());
      std::optional<double> ns;
      if (is_late_) {
        if (piece.sample != nullptr) ns = late_.ns(position, piece.first_step);
        const double own_ns = piece.ns(kTotal) - piece.ns(static_cast<size_t>(Phase::kSync));
        Cell& own = own_[position][column];
        own.sum_ns += own_ns * weight;
        own.weight += weight;
      } else {
        ns = value_of(piece);
      }
      if (!ns) continue;
      Cell& cell = cells_[row_of_[position]][column];
      cell.sum_ns += *ns * weight;
      cell.weight += weight;
    }
  }

  // Columns in which no sync point tells how late a rank was: what its own time is above that of the fastest.
  void fill_own_lateness() {
    std::vector<float> own;
    for (size_t column = 0; column < out_.first_step.size(); ++column) {
      const bool known = std::any_of(cells_.begin(), cells_.end(),
                                     [&](const auto& row) { return row[column].weight > 0; });
      if (known) continue;
      own.clear();
      for (const auto& rank : own_)
        if (rank[column].weight > 0)
          own.push_back(static_cast<float>(rank[column].sum_ns / rank[column].weight));
      if (own.size() < 2) continue;
      const double fast = fastest(own);
      for (size_t i = 0; i < own_.size(); ++i) {
        const Cell& mean = own_[i][column];
        if (mean.weight == 0) continue;
        Cell& cell = cells_[row_of_[i]][column];
        cell.sum_ns += std::max(0.0, mean.sum_ns / mean.weight - fast);
        cell.weight += 1;
      }
    }
  }

  void finish() {
    std::vector<std::pair<double, size_t>> order;  // mean, row
    for (size_t i = 0; i < out_.rows.size(); ++i) {
      double sum = 0;
      int64_t count = 0;
      for (const Cell& cell : cells_[i]) {
        auto& ms = out_.rows[i].ms.emplace_back();
        if (cell.weight == 0) continue;
        ms = cell.sum_ns / cell.weight / 1e6;
        sum += *ms;
        ++count;
      }
      order.emplace_back(count > 0 ? sum / static_cast<double>(count) : -1, i);
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    if (std::ssize(order) > query_.rows) order.resize(static_cast<size_t>(query_.rows));
    if (query_.in_order)
      std::sort(order.begin(), order.end(),
                [](const auto& a, const auto& b) { return a.second < b.second; });
    std::vector<Heatmap::Row> kept;
    for (const auto& [mean, i] : order) kept.push_back(std::move(out_.rows[i]));
    out_.rows = std::move(kept);
    for (const Heatmap::Row& row : out_.rows)
      for (const auto& ms : row.ms)
        if (ms) out_.max_ms = std::max(out_.max_ms.value_or(0), *ms);
  }

  const RunHistory& run_;
  const HeatmapQuery& query_;
  Pieces pieces_;
  Lateness late_;
  const bool is_late_ = query_.value == "late";
  const std::array<bool, kPhaseCount> measured_ = measured_phases(run_);
  Heatmap out_;
  StepRange range_;
  int64_t width_ = 1, base_ = 0;
  std::vector<size_t> row_of_;            // by position
  std::vector<std::vector<Cell>> cells_;  // by row, column
  std::vector<std::vector<Cell>> own_;    // by position, column; for late alone
};

}  // namespace

Heatmap heatmap(const RunHistory& run, const HeatmapQuery& query) {
  return Builder(run, query).build();
}

json::object to_json(const Heatmap& map) {
  json::array rows, values, first, last;
  for (const Heatmap::Row& row : map.rows) {
    rows.push_back({{"label", row.rank ? text(std::to_string(*row.rank)) : text(row.node)},
                    {"rank", integer(row.rank)},
                    {"node", text_or_null(row.node)},
                    {"ranks", row.ranks}});
    json::array cells;
    for (const auto& ms : row.ms) cells.push_back(rounded(ms, 3));
    values.push_back(std::move(cells));
  }
  for (const int64_t step : map.first_step) first.push_back(step);
  for (const int64_t step : map.last_step) last.push_back(step);
  return {{"value", text(map.value)},
          {"unit", "ms"},
          {"by", map.by_node ? "node" : "rank"},
          {"of", map.of},
          {"first_step", std::move(first)},
          {"last_step", std::move(last)},
          {"rows", std::move(rows)},
          {"values", std::move(values)},
          {"max", rounded(map.max_ms, 3)}};
}

}  // namespace stepscope::report
