#include "model/settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <variant>
#include <vector>

#include "base/text.h"

namespace stepscope {
namespace {

using Member = std::variant<double Settings::*, int64_t Settings::*>;

// One row a setting. Inclusive range; what a value is, for the hint of an error.
struct Row {
  std::string_view key;
  Member member;
  double low, high;
  std::string_view what;
};

constexpr std::string_view kShare = "a share from 0 to 1, such as 0.15";
constexpr std::string_view kCount = "a whole number of steps, such as 20";
constexpr std::string_view kBytes = "a whole number of bytes, such as 67108864";
constexpr std::string_view kKilobytes = "a whole number of KB from 16 to 1048576, such as 256";
constexpr std::string_view kProbability = "a probability from 1e-12 to 1, such as 0.0001";
constexpr std::string_view kMicroseconds = "a number of microseconds, such as 50";
constexpr std::string_view kSeconds = "a number of seconds, such as 30";
constexpr std::string_view kTimes = "a factor, such as 20";
constexpr double kMaxCount = 1e12;
constexpr double kMaxBytes = 1e15;

constexpr std::array kRows = {
    Row{"input_warning", &Settings::input_warning, 0, 1, kShare},
    Row{"input_critical", &Settings::input_critical, 0, 1, kShare},
    Row{"h2d_warning", &Settings::h2d_warning, 0, 1, kShare},
    Row{"h2d_critical", &Settings::h2d_critical, 0, 1, kShare},
    Row{"sync_warning", &Settings::sync_warning, 0, 1, kShare},
    Row{"sync_critical", &Settings::sync_critical, 0, 1, kShare},
    Row{"optimizer_warning", &Settings::optimizer_warning, 0, 1, kShare},
    Row{"optimizer_critical", &Settings::optimizer_critical, 0, 1, kShare},
    Row{"overhead_warning", &Settings::overhead_warning, 0, 1, kShare},
    Row{"overhead_critical", &Settings::overhead_critical, 0, 1, kShare},
    Row{"compute_bound", &Settings::compute_bound, 0, 1, kShare},
    Row{"warmup_steps", &Settings::warmup_steps, 0, kMaxCount, kCount},
    Row{"min_steady_steps", &Settings::min_steady_steps, 1, kMaxCount, kCount},
    Row{"memory_min_steps", &Settings::memory_min_steps, 1, kMaxCount, kCount},
    Row{"memory_creep_share", &Settings::memory_creep_share, 0, 1, kShare},
    Row{"memory_creep_bytes", &Settings::memory_creep_bytes, 1, kMaxBytes, kBytes},
    Row{"memory_creep_any_bytes", &Settings::memory_creep_any_bytes, 1, kMaxBytes, kBytes},
    Row{"memory_pressure_warning", &Settings::memory_pressure_warning, 0, 1, kShare},
    Row{"memory_pressure_critical", &Settings::memory_pressure_critical, 0, 1, kShare},
    Row{"memory_imbalance", &Settings::memory_imbalance, 0, 1, kShare},
    Row{"straggler_delta", &Settings::straggler_delta, 0, 1, kShare},
    Row{"straggler_margin", &Settings::straggler_margin, 0, 1, kShare},
    Row{"straggler_p", &Settings::straggler_p, 1e-12, 1, kProbability},
    Row{"gain_warning", &Settings::gain_warning, 0, 1, kShare},
    Row{"gain_critical", &Settings::gain_critical, 0, 1, kShare},
    Row{"node_ranks", &Settings::node_ranks, 0, 1, kShare},
    Row{"node_others", &Settings::node_others, 0, 1, kShare},
    Row{"spikes_cost", &Settings::spikes_cost, 0, 1, kShare},
    Row{"spikes_syncs", &Settings::spikes_syncs, 0, 1, kShare},
    Row{"leftover_cost", &Settings::leftover_cost, 0, 1, kShare},
    Row{"jitter_warning", &Settings::jitter_warning, 0, 1, kShare},
    Row{"fit_takes", &Settings::fit_takes, 0, 1, kShare},
    Row{"blocked_us", &Settings::blocked_us, 0, 1e6, kMicroseconds},
    Row{"slowdown", &Settings::slowdown, 0, 10, kShare},
    Row{"slowdown_steps", &Settings::slowdown_steps, 5, kMaxCount, kCount},
    Row{"ramp_steps", &Settings::ramp_steps, 5, kMaxCount, kCount},
    Row{"stuck_s", &Settings::stuck_s, 0, 1e6, kSeconds},
    Row{"stuck_steps", &Settings::stuck_steps, 0, 1e6, kTimes},
    Row{"stuck_long_times", &Settings::stuck_long_times, 1, 1e6, kTimes},
    Row{"segment_kb", &Settings::segment_kb, 16, 1 << 20, kKilobytes},
    Row{"worker_segment_kb", &Settings::worker_segment_kb, 16, 1 << 20, kKilobytes},
    Row{"shm_share", &Settings::shm_share, 0, 1, kShare},
    Row{"keep_raw_steps", &Settings::keep_raw_steps, 1, 1e7, kCount},
};
static_assert(sizeof(Settings) == 8 * kRows.size(), "every setting needs a row");

const Row* find_row(std::string_view key) {
  for (const Row& row : kRows)
    if (row.key == key) return &row;
  return nullptr;
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> line(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) line[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = line[0];
    line[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = line[j];
      line[j] = std::min({line[j] + 1, line[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return line[b.size()];
}

std::string_view nearest_key(std::string_view key) {
  const auto distance = [&](const Row& row) { return edit_distance(key.substr(0, 100), row.key); };
  return std::min_element(kRows.begin(), kRows.end(),
                          [&](const Row& a, const Row& b) { return distance(a) < distance(b); })
      ->key;
}

std::optional<double> parse_real(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <typename T>
std::string print(T value) {
  std::array<char, 64> buffer;
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), end};
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return out;
}

Error at(std::string_view where, Error error) {
  error.message = std::string(where) + ": " + error.message;
  return error;
}

struct Entry {
  std::string_view key, value;
};

// One line of stepscope.toml. No entry: blank or comment.
Result<std::optional<Entry>> parse_toml_line(std::string_view line) {
  line = trim(line);
  if (line.empty() || line[0] == '#') return std::optional<Entry>();
  if (line[0] == '[')
    return Error{"a section \"" + std::string(line) + "\", but settings have no sections",
                 "write flat lines, such as: input_warning = 0.15"};
  const size_t equals = line.find('=');
  if (equals == std::string_view::npos)
    return Error{"no \"=\" in \"" + std::string(line) + "\"", "write: key = value"};
  std::string_view key = trim(line.substr(0, equals));
  std::string_view value = trim(line.substr(equals + 1));
  if (key.size() >= 2 && key.front() == '"' && key.back() == '"')
    key = key.substr(1, key.size() - 2);
  if (!value.empty() && (value[0] == '"' || value[0] == '\'')) {
    const size_t close = value.find(value[0], 1);
    if (close == std::string_view::npos)
      return Error{"the quote of " + std::string(value) + " is not closed", "write: key = value"};
    const std::string_view rest = trim(value.substr(close + 1));
    if (!rest.empty() && rest[0] != '#')
      return Error{"\"" + std::string(rest) + "\" after the value", "one key = value a line"};
    value = value.substr(1, close - 1);
  } else {
    value = trim(value.substr(0, value.find('#')));
  }
  if (key.empty() || value.empty())
    return Error{
        "no " + std::string(key.empty() ? "key" : "value") + " in \"" + std::string(line) + "\"",
        "write: key = value"};
  return std::optional<Entry>(Entry{key, value});
}

Status apply_toml(Settings& settings, std::string_view text, std::string_view name) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::set<std::string, std::less<>> seen;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::string where = std::string(name) + ":" + std::to_string(number);
    const auto parsed = parse_toml_line(line);
    if (!parsed) return at(where, parsed.error());
    if (!*parsed) continue;
    const Entry& entry = **parsed;
    if (!seen.emplace(entry.key).second)
      return at(where, {"\"" + std::string(entry.key) + "\" stands twice in this file",
                        "keep one of them"});
    std::string value(entry.value);
    if (value.find_first_not_of("0123456789_.+-eE") == std::string::npos)
      std::erase(value, '_');  // 1_000
    if (const Status set = settings.set(entry.key, value); !set) return at(where, set.error());
  }
  return ok();
}

}  // namespace

Status Settings::set(std::string_view key, std::string_view value) {
  const Row* row = find_row(key);
  if (row == nullptr)
    return Error{
        "unknown setting \"" + std::string(key) + "\" (value \"" + std::string(value) + "\")",
        "did you mean " + std::string(nearest_key(key)) + "?"};
  value = trim(value);
  const Error unreadable{"setting " + std::string(key) + ": \"" + std::string(value) +
                             "\" is not " + std::string(row->what.substr(0, row->what.find(','))),
                         "use " + std::string(row->what)};
  if (const auto* real = std::get_if<double Settings::*>(&row->member)) {
    const auto parsed = parse_real(value);
    if (!parsed || !(*parsed >= row->low && *parsed <= row->high)) return unreadable;  // NaN too
    this->** real = *parsed;
    return ok();
  }
  const auto parsed = parse_number<int64_t>(value);
  if (!parsed || static_cast<double>(*parsed) < row->low ||
      static_cast<double>(*parsed) > row->high)
    return unreadable;
  this->*std::get<int64_t Settings::*>(row->member) = *parsed;
  return ok();
}

std::map<std::string, std::string> Settings::effective() const {
  std::map<std::string, std::string> out;
  for (const Row& row : kRows)
    std::visit([&](auto member) { out.emplace(row.key, print(this->*member)); }, row.member);
  return out;
}

Result<Settings> load_settings(const std::map<std::string, std::string>& from_flags,
                               const std::map<std::string, std::string>& environment,
                               std::string_view toml_text, std::string_view toml_name) {
  Settings settings;
  if (const Status applied = apply_toml(settings, toml_text, toml_name); !applied)
    return applied.error();
  for (const Row& row : kRows) {
    const std::string variable = "STEPSCOPE_" + upper(row.key);
    const auto found = environment.find(variable);
    if (found == environment.end() || found->second.empty())
      continue;  // empty: unset, as shells have it
    if (const Status set = settings.set(row.key, found->second); !set)
      return at(variable, set.error());
  }
  for (const auto& [key, value] : from_flags)
    if (const Status set = settings.set(key, value); !set)
      return at("--set " + key + "=" + value, set.error());
  return settings;
}

}  // namespace stepscope
