#include "report/series.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "report/phases.h"

namespace stepscope::report {
namespace {

int64_t floor_to(int64_t value, int64_t width) {
  return value >= 0 ? value - value % width : -((-value + width - 1) / width * width);
}

int64_t power_of_ten(int64_t at_least) {
  int64_t power = 1;
  while (power < at_least) power *= 10;
  return power;
}

struct Bin {
  int64_t first_step = INT64_MAX, last_step = INT64_MIN;
  int64_t count = 0;             // of the rank with most
  int64_t of_rank = 0;           // of the rank in hand
  size_t rank = 0;               // which that is
  std::optional<double> time_s;  // of the first rank that has it
  size_t time_rank = 0;
  double weight = 0;  // rank-steps
  double least_ns = 0, most_ns = 0;
  std::array<double, kPhaseCount + 1> sum_ns{};
  std::map<std::string, double> user_ns;
};

void add(Bin& bin, const Piece& piece, size_t position, int64_t begin_ns) {
  if (bin.rank != position) bin.of_rank = 0;
  bin.rank = position;
  bin.of_rank += piece.count();
  bin.count = std::max(bin.count, bin.of_rank);
  const auto weight = static_cast<double>(piece.count());
  bin.least_ns = bin.weight == 0 ? piece.least_ns() : std::min(bin.least_ns, piece.least_ns());
  bin.most_ns = std::max(bin.most_ns, piece.most_ns());
  bin.weight += weight;
  bin.first_step = std::min(bin.first_step, piece.first_step);
  bin.last_step = std::max(bin.last_step, piece.last_step);
  for (size_t i = 0; i <= kTotal; ++i) bin.sum_ns[i] += piece.ns(i) * weight;
  piece.each_user([&](const std::string& name, double ns) {
    if (const auto builtin = phase_from_name(name))
      bin.sum_ns[static_cast<size_t>(*builtin)] += ns * weight;
    else
      bin.user_ns[name] += ns * weight;
  });
  if (bin.time_s && bin.time_rank != position) return;
  bin.time_s = static_cast<double>(piece.end_ns() - begin_ns) / 1e9;
  bin.time_rank = position;
}

class Builder {
 public:
  Builder(const RunHistory& run, const SeriesQuery& query, Pieces& pieces)
      : run_(run), query_(query), pieces_(pieces) {}

  Series build() {
    out_.rank = query_.rank;
    describe();
    if (out_.first) collect();
    finish();
    return std::move(out_);
  }

 private:
  bool is_asked_for(const RankHistory& rank) const {
    return (!query_.rank || *query_.rank == rank.rank) &&
           (query_.node.empty() || query_.node == rank.node);
  }

  // What there is, over the ranks asked for.
  void describe() {
    for (size_t i = 0; i < run_.ranks.size(); ++i) {
      const RankHistory& rank = run_.ranks[i];
      if (!is_asked_for(rank)) continue;
      const auto pieces = pieces_.of(i);
      if (pieces.empty()) continue;
      const int64_t first = pieces.front().first_step, last = pieces.back().last_step;
      out_.first = out_.first ? std::min(*out_.first, first) : first;
      out_.last = out_.last ? std::max(*out_.last, last) : last;
      const auto raw = std::find_if(pieces.begin(), pieces.end(),
                                    [](const Piece& piece) { return piece.sample != nullptr; });
      if (raw != pieces.end())
        out_.raw_from = std::max(out_.raw_from.value_or(raw->first_step), raw->first_step);
      const auto steady = std::find_if(pieces.begin(), pieces.end(), [](const Piece& piece) {
        return piece.sample == nullptr || piece.sample->steady();
      });
      if (steady != pieces.end())
        out_.warmup_until =
            std::min(out_.warmup_until.value_or(steady->first_step), steady->first_step);
    }
  }

  void collect() {
    const StepRange asked{std::max(query_.range.from, *out_.first),
                          std::min(query_.range.to, *out_.last)};
    if (asked.to < asked.from) return;
    width_ = column_width(asked, query_.points);
    const int64_t base = floor_to(asked.from, width_);
    bins_.resize(static_cast<size_t>((asked.to - base) / width_) + 1);
    for (size_t i = 0; i < run_.ranks.size(); ++i) {
      if (!is_asked_for(run_.ranks[i])) continue;
      for (const Piece& piece : pieces_.of(i, asked)) {
        // Rollups of several ranks may begin a few steps apart.
        const int64_t width =
            piece.sample != nullptr ? width_ : std::max(width_, power_of_ten(piece.count()));
        const int64_t at = std::max<int64_t>(floor_to(piece.first_step, width) - base, 0) / width_;
        add(bins_[static_cast<size_t>(at)], piece, i, run_.ranks[i].first_begin_ns);
      }
    }
  }

  void finish() {
    const auto measured = measured_phases(run_);
    for (size_t i = 0; i < kPhaseCount; ++i)
      out_.phases.push_back({std::string(kPhaseNames[i]), false, measured[i]});
    std::set<std::string> users;
    for (const Bin& bin : bins_)
      for (const auto& [name, ns] : bin.user_ns) users.insert(name);
    for (const std::string& name : users) out_.phases.push_back({name, true, true});
    for (const Bin& bin : bins_) {
      if (bin.weight == 0) continue;
      SeriesPoint& point = out_.points.emplace_back();
      point.first_step = bin.first_step;
      point.last_step = bin.last_step;
      point.count = bin.count;
      point.time_s = bin.time_s.value_or(0);
      point.total_ms = bin.sum_ns[kTotal] / bin.weight / 1e6;
      point.total_min_ms = bin.least_ns / 1e6;
      point.total_max_ms = bin.most_ns / 1e6;
      for (size_t i = 0; i < kPhaseCount; ++i)
        point.phase_ms.push_back(bin.sum_ns[i] / bin.weight / 1e6);
      for (const std::string& name : users) {
        const auto at = bin.user_ns.find(name);
        point.phase_ms.push_back(at == bin.user_ns.end() ? 0 : at->second / bin.weight / 1e6);
      }
    }
    for (size_t i = 0; i + 1 < out_.points.size(); ++i)  // rollups of several ranks, apart
      out_.points[i].last_step =
          std::min(out_.points[i].last_step, out_.points[i + 1].first_step - 1);
  }

  const RunHistory& run_;
  const SeriesQuery& query_;
  Pieces& pieces_;
  Series out_;
  std::vector<Bin> bins_;
  int64_t width_ = 1;
};

template <typename Value>
json::array column(const Series& s, Value value) {
  json::array out;
  out.reserve(s.points.size());
  for (const SeriesPoint& point : s.points) out.push_back(value(point));
  return out;
}

}  // namespace

int64_t column_width(const StepRange& range, int64_t points) {
  for (int64_t power = 1;; power *= 10)
    for (const int64_t width : {power, 2 * power, 5 * power})
      if ((range.to - floor_to(range.from, width)) / width + 1 <= std::max<int64_t>(points, 1) ||
          width > (int64_t{1} << 60))
        return width;
}

Series series(const RunHistory& run, const SeriesQuery& query) {
  Pieces pieces(run);
  return series(run, query, pieces);
}

Series series(const RunHistory& run, const SeriesQuery& query, Pieces& pieces) {
  return Builder(run, query, pieces).build();
}

json::object to_json(const Series& s) {
  json::array phases;
  for (size_t i = 0; i < s.phases.size(); ++i) {
    const Series::PhaseName& phase = s.phases[i];
    phases.push_back({{"name", text(phase.name)},
                      {"user", phase.user},
                      {"ms", column(s, [&](const SeriesPoint& p) {
                         return phase.measured ? rounded(p.phase_ms[i]) : json::value(nullptr);
                       })}});
  }
  return {
      {"rank", integer(s.rank)},
      {"first", integer(s.first)},
      {"last", integer(s.last)},
      {"raw_from", integer(s.raw_from)},
      {"warmup_until", integer(s.warmup_until)},
      {"first_step", column(s, [](const SeriesPoint& p) { return json::value(p.first_step); })},
      {"last_step", column(s, [](const SeriesPoint& p) { return json::value(p.last_step); })},
      {"count", column(s, [](const SeriesPoint& p) { return json::value(p.count); })},
      {"time_s", column(s, [](const SeriesPoint& p) { return rounded(p.time_s); })},
      {"total_ms", column(s, [](const SeriesPoint& p) { return rounded(p.total_ms); })},
      {"total_min_ms", column(s, [](const SeriesPoint& p) { return rounded(p.total_min_ms); })},
      {"total_max_ms", column(s, [](const SeriesPoint& p) { return rounded(p.total_max_ms); })},
      {"phases", std::move(phases)},
  };
}

}  // namespace stepscope::report
