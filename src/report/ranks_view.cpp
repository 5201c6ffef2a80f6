#include "report/ranks_view.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/text.h"
#include "model/facts.h"
#include "report/lateness.h"
#include "report/phases.h"
#include "report/series.h"
#include "report/text.h"

namespace stepscope::report {
namespace {

constexpr std::array kColumns = {"rank",     "ranks",  "node",    "state",        "step",
                                 "total_ms", "own_ms", "late_ms", "memory_bytes", "cpu_cores"};

std::string state_of(const RunHistory& run, const RankHistory& rank) {
  if (!run.live || (rank.facts & kFactClosed) != 0) return "ended";
  return rank.doing && rank.doing->alive ? "live" : "gone";
}

std::optional<int64_t> memory_of(const RankHistory& rank) {
  for (auto m = rank.memory.rbegin(); m != rank.memory.rend(); ++m)
    if (m->rss_bytes) return *m->rss_bytes + m->worker_pss_bytes.value_or(0);
  return std::nullopt;
}

std::optional<double> cores_of(const RankHistory& rank) {
  for (auto m = rank.memory.rbegin(); m != rank.memory.rend(); ++m)
    if (m->cpu_cores) return m->cpu_cores;
  return std::nullopt;
}

// Of one rank over the newest steps; ns.
struct Window {
  int64_t steps = 0, first_step = 0;
  std::array<double, kPhaseCount + 1> mean_ns{};
  std::map<std::string, double> user_ns;
  double late_ns = 0;
  int64_t late_steps = 0;
};

class Builder {
 public:
  Builder(const RunHistory& run, const RanksQuery& query)
      : run_(run),
        query_(query),
        pieces_(run),
        late_(run, {pieces_.all().to - RanksView::kWindow + 1, pieces_.all().to}),
        measured_(measured_phases(run)) {}

  RanksView build() {
    RanksView view;
    view.by_node = query_.by_node;
    std::vector<RanksRow> rows = of_ranks(view);
    if (query_.by_node) rows = of_nodes(rows);
    view.of = std::ssize(rows);
    std::erase_if(rows, [&](const RanksRow& row) { return !matches(row); });
    view.total = std::ssize(rows);
    sort(rows);
    const auto begin = std::min<int64_t>(query_.offset, view.total);
    const auto end = std::min<int64_t>(begin + query_.limit, view.total);
    for (int64_t i = begin; i < end; ++i) {
      RanksRow& row = rows[static_cast<size_t>(i)];
      const Series trend = series(run_,
                                  {.rank = row.rank,
                                   .node = row.rank ? "" : row.node,
                                   .range = {},
                                   .points = RanksRow::kTrend},
                                  pieces_);
      for (const SeriesPoint& point : trend.points) row.trend_ms.push_back(point.total_ms);
      view.rows.push_back(std::move(row));
    }
    return view;
  }

 private:
  Window window_of(size_t position) const {
    const RankHistory& rank = run_.ranks[position];
    const bool any_steady = rank.steps > rank.warmup_steps;
    Window w;
    for (auto s = rank.raw.rbegin(); s != rank.raw.rend() && w.steps < RanksView::kWindow; ++s) {
      if (w.steps > 0 && s->step >= w.first_step) break;  // of an earlier process
      if (!is_timed(*s) || (any_steady && !s->steady())) continue;
      ++w.steps;
      w.first_step = s->step;
      for (size_t i = 0; i < kPhaseCount; ++i) w.mean_ns[i] += static_cast<double>(s->phase_ns[i]);
      w.mean_ns[kTotal] += static_cast<double>(s->total_ns());
      for (const auto& [name, ns] : s->user_phase_ns) {
        const auto builtin = phase_from_name(name);
        (builtin ? w.mean_ns[static_cast<size_t>(*builtin)] : w.user_ns[name]) +=
            static_cast<double>(ns);
      }
      if (const auto late = late_.ns(position, s->step + pieces_.offset(position))) {
        w.late_ns += *late;
        ++w.late_steps;
      }
    }
    for (double& ns : w.mean_ns) ns /= static_cast<double>(std::max<int64_t>(w.steps, 1));
    for (auto& [name, ns] : w.user_ns) ns /= static_cast<double>(std::max<int64_t>(w.steps, 1));
    return w;
  }

  RanksRow row_of(const RankHistory& rank, const Window& w) const {
    RanksRow row;
    row.rank = rank.rank;
    row.node = rank.node;
    row.state = state_of(run_, rank);
    row.memory_bytes = memory_of(rank);
    row.cpu_cores = cores_of(rank);
    if (run_.live) row.doing = rank.doing;
    if (!rank.raw.empty()) row.step = rank.raw.back().step;
    for (size_t i = 0; i < kPhaseCount; ++i)
      row.phase_ms[std::string(kPhaseNames[i])] =
          w.steps > 0 && measured_[i] ? std::optional(w.mean_ns[i] / 1e6) : std::nullopt;
    for (const std::string& name : users_) row.phase_ms[name] = std::nullopt;
    if (w.steps == 0) return row;
    for (const std::string& name : users_) {
      const auto at = w.user_ns.find(name);
      row.phase_ms[name] = at == w.user_ns.end() ? 0 : at->second / 1e6;
    }
    row.total_ms = w.mean_ns[kTotal] / 1e6;
    row.own_ms = (w.mean_ns[kTotal] - w.mean_ns[static_cast<size_t>(Phase::kSync)]) / 1e6;
    if (w.late_steps > 0) row.late_ms = w.late_ns / static_cast<double>(w.late_steps) / 1e6;
    return row;
  }

  std::vector<RanksRow> of_ranks(RanksView& view) {
    std::vector<Window> windows;
    for (size_t i = 0; i < run_.ranks.size(); ++i) {
      windows.push_back(window_of(i));
      view.window_steps = std::max(view.window_steps, windows.back().steps);
      for (const auto& [name, ns] : windows.back().user_ns) users_.insert(name);
    }
    std::vector<RanksRow> rows;
    std::vector<float> own;
    for (size_t i = 0; i < run_.ranks.size(); ++i) {
      rows.push_back(row_of(run_.ranks[i], windows[i]));
      if (rows.back().own_ms) own.push_back(static_cast<float>(*rows.back().own_ms));
    }
    if (!late_.knows_own() || own.size() < 2) return rows;
    const double fast = fastest(own);
    for (RanksRow& row : rows)
      if (!row.late_ms && row.own_ms) row.late_ms = std::max(0.0, *row.own_ms - fast);
    return rows;
  }

  // Sums as they come; of what is a mean, `counts` says over how many ranks.
  std::vector<RanksRow> of_nodes(const std::vector<RanksRow>& ranks) const {
    std::map<std::string, size_t> at;
    std::vector<RanksRow> nodes;
    std::vector<std::array<double, 3>> counts;
    std::vector<std::map<std::string, double>> phase_counts;
    const auto add = [](auto& sum, const auto& value) {
      if (value) sum = sum.value_or(0) + *value;
      return value.has_value() ? 1.0 : 0.0;
    };
    for (const RanksRow& rank : ranks) {
      const auto [entry, fresh] = at.try_emplace(rank.node, nodes.size());
      if (fresh) {
        RanksRow& node = nodes.emplace_back();
        node.node = rank.node;
        node.ranks = 0;
        node.state = rank.state;
        counts.emplace_back();
        phase_counts.emplace_back();
      }
      const size_t i = entry->second;
      RanksRow& node = nodes[i];
      ++node.ranks;
      if (rank.state == "live" || (rank.state == "gone" && node.state == "ended"))
        node.state = rank.state;
      if (rank.step) node.step = std::min(node.step.value_or(*rank.step), *rank.step);
      counts[i][0] += add(node.total_ms, rank.total_ms);
      counts[i][1] += add(node.own_ms, rank.own_ms);
      counts[i][2] += add(node.late_ms, rank.late_ms);
      add(node.memory_bytes, rank.memory_bytes);
      add(node.cpu_cores, rank.cpu_cores);
      for (const auto& [name, ms] : rank.phase_ms)
        phase_counts[i][name] += add(node.phase_ms[name], ms);
    }
    for (size_t i = 0; i < nodes.size(); ++i) {
      const auto mean = [](std::optional<double>& sum, double count) {
        if (sum) *sum /= count;
      };
      mean(nodes[i].total_ms, counts[i][0]);
      mean(nodes[i].own_ms, counts[i][1]);
      mean(nodes[i].late_ms, counts[i][2]);
      for (auto& [name, ms] : nodes[i].phase_ms) mean(ms, phase_counts[i][name]);
    }
    return nodes;
  }

  bool matches(const RanksRow& row) const {
    if (query_.filter.empty()) return true;
    if (const auto number = parse_number<int32_t>(query_.filter); number && row.rank == *number)
      return true;
    return lower_case(row.node).find(lower_case(query_.filter)) != std::string::npos;
  }

  std::optional<double> value(const RanksRow& row) const {
    const std::string& column = query_.sort;
    const auto real = [](const auto& v) {
      return v ? std::optional(static_cast<double>(*v)) : std::nullopt;
    };
    if (column == "rank") return real(row.rank);
    if (column == "ranks") return static_cast<double>(row.ranks);
    if (column == "step") return real(row.step);
    if (column == "total_ms") return row.total_ms;
    if (column == "own_ms") return row.own_ms;
    if (column == "late_ms") return row.late_ms;
    if (column == "memory_bytes") return real(row.memory_bytes);
    if (column == "cpu_cores") return row.cpu_cores;
    const auto phase = row.phase_ms.find(column);
    return phase == row.phase_ms.end() ? std::nullopt : phase->second;
  }

  // What is not measured comes last in both orders; ties by rank, or node.
  void sort(std::vector<RanksRow>& rows) const {
    const bool words = query_.sort == "node" || query_.sort == "state";
    std::vector<std::pair<std::optional<double>, size_t>> order;
    for (size_t i = 0; i < rows.size(); ++i)
      order.emplace_back(words ? std::nullopt : value(rows[i]), i);
    const auto word = [&](size_t i) -> const std::string& {
      return query_.sort == "node" ? rows[i].node : rows[i].state;
    };
    std::stable_sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
      if (words)
        return query_.ascending ? word(a.second) < word(b.second) : word(b.second) < word(a.second);
      if (a.first.has_value() != b.first.has_value()) return a.first.has_value();
      return query_.ascending ? a.first < b.first : b.first < a.first;
    });
    std::vector<RanksRow> sorted;
    for (const auto& [key, i] : order) sorted.push_back(std::move(rows[i]));
    rows = std::move(sorted);
  }

  const RunHistory& run_;
  const RanksQuery& query_;
  Pieces pieces_;
  Lateness late_;
  std::array<bool, kPhaseCount> measured_;
  std::set<std::string> users_;
};

json::object to_json(const RanksRow& row) {
  json::object phases;
  for (const std::string_view name : kPhaseNames)
    phases[name] = rounded(row.phase_ms.at(std::string(name)));
  for (const auto& [name, ms] : row.phase_ms)
    if (!phase_from_name(name)) phases[valid_utf8(name)] = rounded(ms);
  json::array trend;
  for (const double ms : row.trend_ms) trend.push_back(rounded(ms));
  json::value doing = nullptr;
  if (row.doing)
    doing = {{"phase", text(row.doing->phase)},
             {"since_s", rounded(static_cast<double>(row.doing->for_ns) / 1e9)}};
  return {{"rank", integer(row.rank)},
          {"node", text_or_null(row.node)},
          {"ranks", row.ranks},
          {"state", row.state},
          {"step", integer(row.step)},
          {"total_ms", rounded(row.total_ms)},
          {"own_ms", rounded(row.own_ms)},
          {"late_ms", rounded(row.late_ms)},
          {"phases", std::move(phases)},
          {"memory_bytes", integer(row.memory_bytes)},
          {"cpu_cores", rounded(row.cpu_cores)},
          {"trend", std::move(trend)},
          {"doing", std::move(doing)}};
}

}  // namespace

bool is_phase_of(const RunHistory& run, const std::string& name) {
  if (phase_from_name(name)) return true;
  for (const RankHistory& rank : run.ranks)
    for (const StepSample& step : rank.raw)
      for (const auto& [user, ns] : step.user_phase_ns)
        if (user == name) return true;
  return false;
}

bool is_ranks_column(const RunHistory& run, const std::string& name) {
  return std::find(kColumns.begin(), kColumns.end(), name) != kColumns.end() ||
         is_phase_of(run, name);
}

RanksView ranks_view(const RunHistory& run, const RanksQuery& query) {
  return Builder(run, query).build();
}

json::object to_json(const RanksView& view) {
  json::array rows;
  for (const RanksRow& row : view.rows) rows.push_back(to_json(row));
  return {{"by", view.by_node ? "node" : "rank"},
          {"total", view.total},
          {"of", view.of},
          {"window_steps", view.window_steps},
          {"rows", std::move(rows)}};
}

}  // namespace stepscope::report
