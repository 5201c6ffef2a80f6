#include "model/loader_history.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace stepscope {
namespace {

constexpr std::string_view kVersion = "loader 2", kOldVersion = "loader 1", kEnd = " end";
constexpr size_t kOldParts = 18;      // of the old version
constexpr int64_t kMostItems = 4096;  // claimed by a text: more is garbage

int32_t bin_of(int64_t ns) {
  if (ns < 1) return 0;
  const auto bin = static_cast<int32_t>(std::log2(static_cast<double>(ns)) * 4);
  return std::clamp<int32_t>(bin, 0, DurationBins::kBins - 1);
}

// Words separated by spaces; a text is its length, a colon and its bytes.
struct Writer {
  std::string text{kVersion};
  template <typename T>
  void number(T v) {
    std::array<char, 24> buffer;
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), v).ptr;
    text += ' ';
    text.append(buffer.data(), end);
  }
  void words(const std::string& v) {
    number(v.size());
    text += ':';
    text += v;
  }
  template <typename Map, typename Key>
  void map(const Map& items, Key key) {
    number(items.size());
    for (const auto& [name, value] : items) {
      (this->*key)(name);
      number(value);
    }
  }
};

struct Reader {
  std::string_view rest;
  bool good = true;
  template <typename T>
  void number(T& v) {
    if (!good || rest.empty() || rest[0] != ' ') return fail();
    const auto [end, error] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), v);
    if (error != std::errc{} || v < T{}) return fail();
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
  }
  void words(std::string& v) {
    size_t size = 0;
    number(size);
    if (!good || rest.empty() || rest[0] != ':' || size >= rest.size()) return fail();
    v = rest.substr(1, size);
    rest.remove_prefix(1 + size);
  }
  int64_t items() {
    int64_t count = 0;
    number(count);
    if (count > kMostItems) fail();
    return good ? count : 0;
  }
  void fail() { good = false; }
};

// The same fields in the same order for both. `pid` and flags are not negative either.
template <typename Visit, typename Worker>
void worker_numbers(Visit visit, Worker& w, size_t parts = kLoaderParts) {
  for (auto* field : {&w.worker, &w.pid}) visit(*field);
  for (auto* field : {&w.processes, &w.batches, &w.samples, &w.detail_batches, &w.asked, &w.late_ns,
                      &w.read_bytes, &w.storage_bytes})
    visit(*field);
  for (size_t i = 0; i < parts; ++i) visit(w.sums[i]);
}
template <typename Visit, typename Loader>
void loader_numbers(Visit visit, Loader& l, size_t parts = kLoaderParts) {
  for (auto* field : {&l.rank, &l.loader, &l.workers, &l.prefetch_factor, &l.batch_size})
    visit(*field);
  for (auto* field :
       {&l.starts, &l.start_ns, &l.epochs, &l.asked, &l.asked_training, &l.waited_ns, &l.ready})
    visit(*field);
  for (size_t i = 0; i < parts; ++i) visit(l.main[i]);
}

void write_bins(Writer& out, const DurationBins& bins) {
  out.map(bins.bins, &Writer::number<int32_t>);
}
void read_bins(Reader& in, DurationBins& bins) {
  for (int64_t left = in.items(); left > 0 && in.good; --left) {
    int32_t bin = 0;
    int64_t times = 0;
    in.number(bin);
    in.number(times);
    if (bin < static_cast<int32_t>(DurationBins::kBins)) bins.bins[bin] = times;
  }
}

}  // namespace

void DurationBins::add(int64_t ns, int64_t times) {
  if (times > 0) add_bounded(bins[bin_of(ns)], times);
}
void DurationBins::add(const DurationBins& other) {
  for (const auto& [bin, times] : other.bins) add_bounded(bins[bin], times);
}
int64_t DurationBins::count() const {
  int64_t sum = 0;
  for (const auto& [bin, times] : bins) add_bounded(sum, times);
  return sum;
}
std::optional<double> DurationBins::quantile(double q) const {
  const int64_t all = count();
  if (all == 0) return std::nullopt;
  double left = q * static_cast<double>(all);
  int32_t last = 0;
  for (const auto& [bin, times] : bins) {
    last = bin;
    if (left <= static_cast<double>(times)) break;
    left -= static_cast<double>(times);
  }
  return std::exp2((last + 0.5) / 4);
}

LoaderWorker& LoaderHistory::worker(int32_t number) {
  const auto at = std::lower_bound(by_worker.begin(), by_worker.end(), number,
                                   [](const LoaderWorker& w, int32_t n) { return w.worker < n; });
  if (at != by_worker.end() && at->worker == number) return *at;
  if (by_worker.size() >= kMaxWorkers) return by_worker.back();
  const auto made = by_worker.insert(at, LoaderWorker{});
  made->worker = number;
  return *made;
}

int64_t LoaderHistory::sum(LoaderPart part) const {
  int64_t all = 0;
  for (const LoaderWorker& w : by_worker) add_bounded(all, w[part]);
  return all;
}
int64_t LoaderHistory::batches() const {
  int64_t all = 0;
  for (const LoaderWorker& w : by_worker) add_bounded(all, w.batches);
  return all;
}
int64_t LoaderHistory::samples() const {
  int64_t all = 0;
  for (const LoaderWorker& w : by_worker) add_bounded(all, w.samples);
  return all;
}

std::string to_text(const LoaderHistory& l) {
  Writer out;
  const auto number = [&out](const auto& v) { out.number(v); };
  loader_numbers(number, l);
  out.number(int32_t{l.flags});
  out.words(l.dataset);
  out.map(l.transform_ns, &Writer::words);
  write_bins(out, l.wait_ns);
  out.number(l.depth.size());
  for (const int64_t times : l.depth) out.number(times);
  out.number(l.by_worker.size());
  for (const LoaderWorker& w : l.by_worker) {
    worker_numbers(number, w);
    out.number(w.io_seen ? 1 : 0);
    write_bins(out, w.batch_ns);
  }
  return out.text.append(kEnd);
}

std::optional<LoaderHistory> loader_from_text(std::string_view text) {
  const bool old = text.starts_with(kOldVersion);
  if (!old && !text.starts_with(kVersion)) return std::nullopt;
  const size_t parts = old ? kOldParts : kLoaderParts;
  Reader in{text.substr(kVersion.size())};
  LoaderHistory l;
  const auto number = [&in](auto& v) { in.number(v); };
  loader_numbers(number, l, parts);
  int32_t flags = 0;
  in.number(flags);
  l.flags = static_cast<uint8_t>(flags);
  in.words(l.dataset);
  for (int64_t left = in.items(); left > 0 && in.good; --left) {
    std::string name;
    in.words(name);
    in.number(l.transform_ns[name]);
  }
  read_bins(in, l.wait_ns);
  l.depth.resize(static_cast<size_t>(in.items()));
  for (int64_t& times : l.depth) in.number(times);
  for (int64_t left = in.items(); left > 0 && in.good; --left) {
    LoaderWorker& w = l.by_worker.emplace_back();
    worker_numbers(number, w, parts);
    int32_t seen = 0;
    in.number(seen);
    w.io_seen = seen != 0;
    read_bins(in, w.batch_ns);
  }
  if (!in.good || in.rest != kEnd) return std::nullopt;
  return l;
}

}  // namespace stepscope
