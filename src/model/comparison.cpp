#include "model/comparison.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace stepscope {
namespace {

constexpr std::string_view kVersion = "comparison 1", kEnd = " end";
constexpr int64_t kMostItems = 1 << 20;  // claimed by a text: more is garbage

// Words separated by spaces; a text value is its length, a colon and its bytes.
class Writer {
 public:
  std::string text{kVersion};
  void value(double v) { number(v); }
  void value(int64_t v) { number(v); }
  void value(int32_t v) { number(v); }
  void value(bool v) { number(v ? 1 : 0); }
  void value(Scope v) { number(static_cast<int>(v)); }
  void value(const std::string& v) {
    number(v.size());
    text += ':';
    text += v;
  }
  template <typename T>
  void items(const T& list) {
    number(list.size());
  }
  bool good() const { return true; }

 private:
  template <typename T>
  void number(T v) {
    std::array<char, 32> buffer;
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), v).ptr;
    text += ' ';
    text.append(buffer.data(), end);
  }
};

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}
  void value(double& v) {
    number(v);
    if (!std::isfinite(v)) fail();
  }
  void value(int64_t& v) { number(v); }
  void value(int32_t& v) { number(v); }
  void value(bool& v) {
    int n = 0;
    number(n);
    if (n != 0 && n != 1) fail();
    v = n == 1;
  }
  void value(Scope& v) {
    int n = 0;
    number(n);
    if (n < 0 || n > static_cast<int>(Scope::kWorker)) fail();
    v = static_cast<Scope>(n);
  }
  void value(std::string& v) {
    size_t size = 0;
    number(size);
    if (!good_ || rest_.empty() || rest_[0] != ':' || rest_.size() - 1 < size) return fail();
    v = rest_.substr(1, size);
    rest_.remove_prefix(1 + size);
  }
  // How many items follow; never more than the text could hold.
  int64_t items() {
    int64_t count = 0;
    number(count);
    if (count < 0 || count > kMostItems || count > static_cast<int64_t>(rest_.size())) fail();
    return good_ ? count : 0;
  }
  void fail() { good_ = false; }
  bool good() const { return good_; }
  bool at_end() const { return good_ && rest_ == kEnd; }

 private:
  template <typename T>
  void number(T& v) {
    if (!good_ || rest_.empty() || rest_[0] != ' ') return fail();
    const char* begin = rest_.data() + 1;
    const auto [end, error] = std::from_chars(begin, rest_.data() + rest_.size(), v);
    if (error != std::errc{}) return fail();
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
  }
  std::string_view rest_;
  bool good_ = true;
};

// One list of fields for both directions: Value is const for the writer.
template <typename Stream, typename... Values>
void fields(Stream& stream, Values&... values) {
  (stream.value(values), ...);
}

template <typename List, typename Each>
void list(Writer& writer, List& values, size_t, Each each) {
  writer.items(values);
  for (auto& value : values) each(value);
}
template <typename List, typename Each>
void list(Reader& reader, List& values, size_t most, Each each) {
  const int64_t count = reader.items();
  if (count > static_cast<int64_t>(most)) return reader.fail();
  for (int64_t i = 0; i < count && reader.good(); ++i) each(values.emplace_back());
}

void map(Writer& writer, const std::map<std::string, double>& values) {
  writer.items(values);
  for (const auto& [key, value] : values) fields(writer, key, value);
}
void map(Reader& reader, std::map<std::string, double>& values) {
  const int64_t count = reader.items();
  for (int64_t i = 0; i < count && reader.good(); ++i) {
    std::string key;
    double value = 0;
    fields(reader, key, value);
    values.emplace(std::move(key), value);
  }
}

// Only bins that hold something.
void histogram(Writer& writer, const SizeHistogram& h) {
  std::vector<int64_t> used;
  for (size_t i = 0; i < SizeHistogram::kBins; ++i)
    if (h.count[i] != 0) used.push_back(static_cast<int64_t>(i));
  writer.items(used);
  for (const int64_t i : used)
    fields(writer, i, h.count[static_cast<size_t>(i)], h.sum[static_cast<size_t>(i)]);
}
void histogram(Reader& reader, SizeHistogram& h) {
  const int64_t count = reader.items();
  for (int64_t n = 0; n < count && reader.good(); ++n) {
    int64_t i = 0;
    double items = 0, sum = 0;
    fields(reader, i, items, sum);
    if (i < 0 || i >= static_cast<int64_t>(SizeHistogram::kBins)) return reader.fail();
    h.count[static_cast<size_t>(i)] = items;
    h.sum[static_cast<size_t>(i)] = sum;
  }
}

template <typename Stream, typename E>
void episode(Stream& s, E& e) {
  fields(s, e.code, e.pattern, e.scope, e.rank, e.node);
  list(s, e.members, Episode::kMaxRanges, [&](auto& m) { fields(s, m.first, m.second); });
  fields(s, e.opened_step, e.opened_at, e.first_step, e.last_step, e.ended, e.below_for,
         e.opening_delta, e.delta, e.steps, e.time_ns, e.saved_ns, e.saved_by_all_ns, e.excess_ns);
  list(s, e.phases, kMostItems, [&](auto& p) { fields(s, p.phase, p.ns); });
  fields(s, e.samples_ratio);
}

template <typename Stream, typename L>
void leftover(Stream& s, L& l) {
  fields(s, l.steps, l.syncs, l.time_ns, l.cost_ns, l.most_ranks);
  histogram(s, l.cost);
  histogram(s, l.deviation);
  fields(s, l.samples_square, l.samples_work, l.fitted_cost_ns, l.unexplained_cost_ns);
  list(s, l.late, Leftover::kMaxLate, [&](auto& one) { fields(s, one.first, one.second); });
  map(s, l.phases);
  list(s, l.spikes, Leftover::kMaxSpikes,
       [&](auto& one) { fields(s, one.step, one.rank, one.phase, one.cost_ns); });
}

template <typename Stream, typename C>
void comparison(Stream& s, C& c) {
  fields(s, c.attempt, c.last_step, c.settled_step, c.steps, c.ranks, c.first_judged_step,
         c.last_judged_step, c.time_ns, c.cost_ns, c.block_steps);
  list(s, c.blocks, Comparison::kMaxSyncBlocks, [&](auto& b) {
    fields(s, b.first_step, b.last_step, b.steps, b.time_ns, b.transfer_ns, b.cost_ns, b.wait_ns);
  });
  list(s, c.episodes, Comparison::kMaxEpisodes, [&](auto& e) { episode(s, e); });
  leftover(s, c.settled);
  leftover(s, c.leftover);
}

}  // namespace

std::string to_text(const Comparison& value) {
  Writer writer;
  comparison(writer, value);
  return writer.text.append(kEnd);
}

std::optional<Comparison> comparison_from_text(std::string_view text) {
  if (!text.starts_with(kVersion)) return std::nullopt;
  Reader reader(text.substr(kVersion.size()));
  Comparison out;
  comparison(reader, out);
  if (!reader.at_end() || out.block_steps < 1) return std::nullopt;
  return out;
}

}  // namespace stepscope
