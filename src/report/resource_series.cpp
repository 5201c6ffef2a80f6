#include "report/resource_series.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>

namespace stepscope::report {
namespace {

struct Kind {
  std::string_view name, unit;
  bool adds_up;  // over the ranks of a node
  std::optional<double> (*read)(const MemorySample&);
};

std::optional<double> real(const std::optional<int64_t>& value) {
  return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

constexpr std::array kKinds = {
    Kind{"cpu_cores", "cores", true, [](const MemorySample& m) { return m.cpu_cores; }},
    Kind{"memory_bytes", "bytes", true, [](const MemorySample& m) { return real(m.rss_bytes); }},
    Kind{"worker_memory_bytes", "bytes", true,
         [](const MemorySample& m) { return real(m.worker_pss_bytes); }},
    Kind{"gpu_memory_bytes", "bytes", true,
         [](const MemorySample& m) { return real(m.device_allocated_bytes); }},
    Kind{"cpu_wait_share", "share", false, [](const MemorySample& m) { return m.cpu_wait_share; }}};

struct Mean {
  double sum = 0;
  int64_t count = 0;
};
using Values = std::vector<Mean>;  // by moment

// A clock of its own a node: the rank's first step is where all of them are 0.
double time_of(const RankHistory& rank, const MemorySample& m) {
  const bool any = rank.steps + rank.failed_steps > 0;
  const int64_t zero = any ? rank.first_begin_ns : rank.memory.front().mono_ns;
  return static_cast<double>(m.mono_ns - zero) / 1e9;
}

class Builder {
 public:
  Builder(const RunHistory& run, int64_t points) : run_(run), points_(points) {}

  ResourceSeries build() {
    make_grid();
    if (out_.time_s.empty()) return std::move(out_);
    const bool each = run_.ranks.size() <= ResourceSeries::kSingleRanks;
    const std::set<int32_t> worst = each ? std::set<int32_t>{} : most_memory();
    for (const Kind& kind : kKinds) {
      if (!each) add_nodes(kind);
      for (const RankHistory& rank : run_.ranks)
        if (each || worst.contains(rank.rank)) add_rank(kind, rank);
    }
    return std::move(out_);
  }

 private:
  void make_grid() {
    double first = std::numeric_limits<double>::max(), last = std::numeric_limits<double>::lowest();
    size_t most = 0;
    for (const RankHistory& rank : run_.ranks) {
      if (rank.memory.empty()) continue;
      first = std::min(first, time_of(rank, rank.memory.front()));
      last = std::max(last, time_of(rank, rank.memory.back()));
      most = std::max(most, rank.memory.size());
    }
    if (most == 0) return;
    first_ = first;
    const auto count = static_cast<double>(std::min<int64_t>(points_, static_cast<int64_t>(most)));
    width_ = std::max((last - first) / count, 1e-3);
    const auto moments = static_cast<size_t>((last - first) / width_) + 1;
    for (size_t i = 0; i < moments; ++i)
      out_.time_s.push_back(first + static_cast<double>(i) * width_);
  }

  Values values_of(const Kind& kind, const RankHistory& rank) const {
    Values values(out_.time_s.size());
    for (const MemorySample& m : rank.memory) {
      const auto value = kind.read(m);
      if (!value) continue;
      const auto at = static_cast<size_t>(std::max(0.0, (time_of(rank, m) - first_) / width_));
      Mean& mean = values[std::min(at, values.size() - 1)];
      mean.sum += *value;
      ++mean.count;
    }
    return values;
  }

  std::set<int32_t> most_memory() const {
    std::vector<std::pair<double, int32_t>> peaks;
    for (const RankHistory& rank : run_.ranks) {
      double peak = 0;
      for (const MemorySample& m : rank.memory)
        peak = std::max(peak, static_cast<double>(m.rss_bytes.value_or(0)));
      peaks.emplace_back(-peak, rank.rank);
    }
    std::sort(peaks.begin(), peaks.end());
    std::set<int32_t> out;
    for (size_t i = 0; i < std::min(ResourceSeries::kWorst, peaks.size()); ++i)
      out.insert(peaks[i].second);
    return out;
  }

  void add(const Kind& kind, std::optional<int32_t> rank, const std::string& node,
           const Values& values) {
    ResourceSeries::One one{std::string(kind.name), std::string(kind.unit), rank, node, {}};
    bool any = false;
    for (const Mean& mean : values) {
      any = any || mean.count > 0;
      one.values.push_back(mean.count > 0
                               ? std::optional(mean.sum / static_cast<double>(mean.count))
                               : std::nullopt);
    }
    if (any) out_.series.push_back(std::move(one));
  }

  void add_rank(const Kind& kind, const RankHistory& rank) {
    add(kind, rank.rank, rank.node, values_of(kind, rank));
  }

  // A moment's sum over ranks is their sum only where all were read in it: at others a rank's mean over the run stands
  // in, so that a missed reading is no dip.
  void add_nodes(const Kind& kind) {
    std::map<std::string, std::pair<Values, int64_t>> nodes;  // sums, ranks
    for (const RankHistory& rank : run_.ranks) {
      const Values values = values_of(kind, rank);
      Mean all;
      for (const Mean& mean : values) {
        all.sum += mean.sum;
        all.count += mean.count;
      }
      if (all.count == 0) continue;
      const auto known = nodes.find(rank.node);
      if (known == nodes.end() && nodes.size() >= ResourceSeries::kMaxNodes) continue;
      auto& [sums, ranks] = nodes[rank.node];
      sums.resize(values.size());
      ++ranks;
      for (size_t i = 0; i < values.size(); ++i) {
        const Mean& mean = values[i].count > 0 ? values[i] : all;
        sums[i].sum += mean.sum / static_cast<double>(mean.count);
        sums[i].count += values[i].count;
      }
    }
    for (auto& [node, entry] : nodes) {
      auto& [sums, ranks] = entry;
      for (Mean& mean : sums) mean.count = mean.count == 0 ? 0 : kind.adds_up ? 1 : ranks;
      add(kind, std::nullopt, node, sums);
    }
  }

  const RunHistory& run_;
  const int64_t points_;
  ResourceSeries out_;
  double first_ = 0, width_ = 1;
};

json::object gauge(const Gauge& gauge, std::string_view unit) {
  const auto average = gauge.average();
  return {{"measured", average.has_value()},
          {"unit", unit},
          {"average", rounded(average)},
          {"peak", average ? rounded(gauge.peak) : json::value(nullptr)},
          {"note", average ? json::value(nullptr) : text_or_null(gauge.not_measured)}};
}

json::object to_json(const NodeHistory& node) {
  return {
      {"node", text_or_null(node.node)},
      {"cores_usable", node.cores_usable > 0 ? rounded(node.cores_usable) : json::value(nullptr)},
      {"cores_limit_reason", text_or_null(node.cores_limit_reason)},
      {"memory_limit_bytes", integer(node.memory_limit_bytes)},
      {"cpu", gauge(node.cpu_cores, "cores")},
      {"cpu_throttled", gauge(node.cpu_throttled_share, "share")},
      {"memory", gauge(node.memory_bytes, "bytes")},
      {"disk_read", gauge(node.disk_read_bps, "bytes/s")},
      {"disk_write", gauge(node.disk_write_bps, "bytes/s")},
      {"net_rx", gauge(node.net_rx_bps, "bytes/s")},
      {"net_tx", gauge(node.net_tx_bps, "bytes/s")}};
}

}  // namespace

ResourceSeries resource_series(const RunHistory& run, int64_t points) {
  return Builder(run, points).build();
}

json::object to_json(const ResourceSeries& all, const RunHistory& run) {
  json::array time, series, nodes;
  for (const double s : all.time_s) time.push_back(rounded(s, 3));
  for (const ResourceSeries::One& one : all.series) {
    json::array values;
    for (const auto& value : one.values) values.push_back(rounded(value));
    series.push_back({{"name", text(one.name)},
                      {"unit", text(one.unit)},
                      {"rank", integer(one.rank)},
                      {"node", text_or_null(one.node)},
                      {"values", std::move(values)}});
  }
  for (size_t i = 0; i < std::min(run.nodes.size(), ResourceSeries::kMaxNodes); ++i)
    nodes.push_back(to_json(run.nodes[i]));
  return {{"time_s", std::move(time)},
          {"series", std::move(series)},
          {"nodes", std::move(nodes)},
          {"nodes_of", run.nodes.size()}};
}

}  // namespace stepscope::report
