#include "report/summary_bytes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>

#include "base/version.h"
#include "model/loader_history.h"

namespace stepscope::report {
namespace {

// Goes up with every change of a field below. A field that was added must be described: then mend the size here.
constexpr int64_t kLayout = 1;
static_assert(sizeof(Summary) == 1456 && sizeof(RankRow) == 224 && sizeof(StepsRow) == 128);
static_assert(sizeof(PhaseRow) == 104 && sizeof(PartRow) == 96 && sizeof(Finding) == 520);
static_assert(std::endian::native == std::endian::little);

constexpr std::array kReadings = {
    "cpu",  "cpu_machine", "cpu_throttled", "memory",          "memory_in_use",
    "gpus", "disk_read",   "disk_write",    "network_receive", "network_send"};

template <typename T, typename U>
concept Is = std::same_as<std::remove_const_t<T>, U>;

template <typename T>
struct IsOptional : std::false_type {};
template <typename T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <typename T>
struct IsVector : std::false_type {};
template <typename T>
struct IsVector<std::vector<T>> : std::true_type {};
template <typename T>
struct IsMap : std::false_type {};
template <typename T>
struct IsMap<std::map<std::string, T>> : std::true_type {};

constexpr uint8_t most(Severity) { return static_cast<uint8_t>(Severity::kCritical); }
constexpr uint8_t most(Scope) { return static_cast<uint8_t>(Scope::kWorker); }

// Each row described once: both ways read the same.
template <typename A>
void describe(A& a, Is<Evidence> auto& r) {
  a(r.name, r.value, r.unit);
}
template <typename A>
void describe(A& a, Is<Advice> auto& r) {
  a(r.text, r.gain, r.check, r.not_if);
}
template <typename A>
void describe(A& a, Is<Finding> auto& r) {
  a(r.code, r.severity, r.confidence, r.scope, r.rank, r.node, r.device, r.worker, r.phase,
    r.pattern, r.cause, r.first_step, r.last_step, r.share, r.cost_ms_per_step, r.predicted_saving,
    r.title, r.evidence, r.not_measured, r.advice, r.ended);
}
template <typename A>
void describe(A& a, Is<PhaseRow> auto& r) {
  a(r.name, r.user, r.measured, r.applicable, r.mean_ms, r.share, r.note);
}
template <typename A>
void describe(A& a, Is<PartRow> auto& r) {
  a(r.name, r.phase, r.mean_ms, r.share);
}
template <typename A>
void describe(A& a, Is<OccurrenceRow> auto& r) {
  a(r.name, r.count, r.total_ms, r.median_ms);
}
template <typename A>
void describe(A& a, Is<StepsRow> auto& r) {
  a(r.count, r.warmup, r.failed, r.profiled, r.incomplete, r.mean_ms, r.median_ms, r.p95_ms,
    r.warmup_mean_ms, r.exact, r.micro_steps);
}
template <typename A>
void describe(A& a, Is<RankRow> auto& r) {
  a(r.rank, r.node, r.steps, r.phases, r.own_ms, r.rest_ms);
}
template <typename A>
void describe(A& a, Is<NowRow> auto& r) {
  a(r.rank, r.node, r.phase, r.step, r.since_s, r.alive);
}
template <typename A>
void describe(A& a, Is<Reading> auto& r) {
  a(r.unit, r.average, r.peak, r.limit, r.note);
}
template <typename A>
void describe(A& a, Is<NotMeasured> auto& r) {
  a(r.what, r.why);
}
template <typename A>
void describe(A& a, Is<Summary> auto& r) {
  a(r.name, r.id, r.folder, r.started, r.command, r.exit_code, r.live, r.duration_s, r.rank_count,
    r.world_size, r.node_count, r.python_version, r.torch_version, r.clock, r.settings, r.verdict,
    r.findings, r.steps, r.phases, r.parts, r.occurrences, r.ranks, r.now, r.loaders, r.resources,
    r.samples_per_s, r.steps_per_s, r.throughput_over, r.records_written, r.records_dropped,
    r.cost_us_per_step, r.unobserved, r.notices, r.not_measured, r.files, r.next);
}

class Putter {
 public:
  template <typename... T>
  void operator()(const T&... values) {
    (put(values), ...);
  }
  std::string take() { return std::move(out_); }

 private:
  template <typename T>
  void put(const T& value) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      char bytes[sizeof value];
      std::memcpy(bytes, &value, sizeof value);
      out_.append(bytes, sizeof value);
    } else if constexpr (std::same_as<T, std::string>) {
      put_size(value.size());
      out_ += value;
    } else if constexpr (IsOptional<T>::value) {
      put(value.has_value());
      if (value) put(*value);
    } else if constexpr (IsVector<T>::value) {
      put_size(value.size());
      for (const auto& one : value) put(one);
    } else if constexpr (IsMap<T>::value) {
      put_size(value.size());
      for (const auto& [key, one] : value) (*this)(key, one);
    } else if constexpr (std::same_as<T, LoaderRow>) {
      (*this)(to_text(*value.history), value.training);
    } else {
      describe(*this, value);
    }
  }
  void put_size(size_t size) { put(static_cast<uint32_t>(size)); }

  std::string out_;
};

class Taker {
 public:
  explicit Taker(std::string_view bytes) : left_(bytes) {}
  template <typename... T>
  void operator()(T&... values) {
    (take(values), ...);
  }
  bool good() const { return good_; }
  bool whole() const { return good_ && left_.empty(); }

 private:
  template <typename T>
  void take(T& value) {
    if (!good_) return;
    if constexpr (std::same_as<T, bool>) {
      uint8_t byte = 0;
      take(byte);
      value = byte != 0;
    } else if constexpr (std::is_enum_v<T>) {
      uint8_t byte = 0;
      take(byte);
      good_ = good_ && byte <= most(T{});
      if (good_) value = static_cast<T>(byte);
    } else if constexpr (std::is_arithmetic_v<T>) {
      good_ = left_.size() >= sizeof value;
      if (!good_) return;
      std::memcpy(&value, left_.data(), sizeof value);
      left_.remove_prefix(sizeof value);
    } else if constexpr (std::same_as<T, std::string>) {
      const size_t size = take_size();
      value = left_.substr(0, size);
      left_.remove_prefix(size);
    } else if constexpr (IsOptional<T>::value) {
      bool there = false;
      take(there);
      if (there) take(value.emplace());
    } else if constexpr (IsVector<T>::value) {
      for (size_t n = take_size(); n > 0 && good_; --n) take(value.emplace_back());
    } else if constexpr (IsMap<T>::value) {
      for (size_t n = take_size(); n > 0 && good_; --n) {
        std::string key;
        take(key);
        take(value[key]);
      }
    } else if constexpr (std::same_as<T, LoaderRow>) {
      take_loader(value);
    } else {
      describe(*this, value);
    }
  }

  size_t take_size() {  // no item takes less than a byte
    uint32_t size = 0;
    take(size);
    good_ = good_ && size <= left_.size();
    return good_ ? size : 0;
  }

  void take_loader(LoaderRow& row) {
    std::string text;
    (*this)(text, row.training);
    auto loader = loader_from_text(text);
    good_ = good_ && loader.has_value();
    if (!good_) return;
    row.history = std::make_shared<const LoaderHistory>(std::move(*loader));
    row.view = engine::LoaderView(*row.history);
  }

  std::string_view left_;
  bool good_ = true;
};

// What the views count on.
bool is_whole(const Summary& s) {
  if (s.phases.size() < kPhaseCount) return false;
  for (size_t i = 0; i < kPhaseCount; ++i)
    if (s.phases[i].name != kPhaseNames[i]) return false;
  for (const RankRow& rank : s.ranks)
    if (rank.phases.size() != s.phases.size()) return false;
  return std::all_of(kReadings.begin(), kReadings.end(),
                     [&](const char* name) { return s.resources.contains(name); });
}

}  // namespace

std::string to_bytes(const Summary& summary) {
  Putter put;
  put(kLayout, std::string(kVersion), summary);
  return put.take();
}

std::optional<Summary> summary_from_bytes(std::string_view bytes) {
  Taker take(bytes);
  int64_t layout = 0;
  take(layout);
  if (!take.good() || layout != kLayout) return std::nullopt;
  std::string version;
  take(version);
  if (!take.good() || version != kVersion) return std::nullopt;
  Summary summary;
  take(summary);
  if (!take.whole() || !is_whole(summary)) return std::nullopt;
  return summary;
}

}  // namespace stepscope::report
