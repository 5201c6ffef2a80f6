#include "report/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <iterator>

#include "report/text.h"

namespace stepscope::report {
namespace {

bool flat(const json::value& v) {
  const auto simple = [](const json::value& x) { return !x.is_object() && !x.is_array(); };
  if (const json::array* a = v.if_array()) return std::all_of(a->begin(), a->end(), simple);
  if (const json::object* o = v.if_object())
    return o->size() <= 7 &&
           std::all_of(o->begin(), o->end(), [&](const auto& kv) { return simple(kv.value()); });
  return true;
}

// Numbers as people write them (Boost writes 3.8E-1); small objects on one line.
class Printer {
 public:
  explicit Printer(bool pretty) : pretty_(pretty) {}
  void print(const json::value& v, int depth) {
    if (const double* d = v.if_double()) {
      out_ += *d == std::floor(*d) && std::fabs(*d) < 9e15 ? fmt::format("{:.0f}", *d)
                                                           : fmt::format("{:.10g}", *d);
    } else if (const json::array* a = v.if_array()) {
      list('[', ']', flat(v), depth, a->begin(), a->end(),
           [&](const json::value& x) { print(x, depth + 1); });
    } else if (const json::object* o = v.if_object()) {
      list('{', '}', flat(v), depth, o->begin(), o->end(), [&](const json::key_value_pair& kv) {
        out_ += json::serialize(kv.key());
        out_ += pretty_ ? ": " : ":";
        print(kv.value(), depth + 1);
      });
    } else {
      out_ += json::serialize(v);
    }
  }
  std::string take() { return std::move(out_); }

 private:
  template <typename It, typename Each>
  void list(char open, char close, bool one_line, int depth, It begin, It end, Each each) {
    out_ += open;
    for (It it = begin; it != end; ++it) {
      if (it != begin) out_ += ',';
      if (pretty_ && !one_line)
        line(depth + 1);
      else if (pretty_ && it != begin)
        out_ += ' ';
      each(*it);
    }
    if (pretty_ && !one_line && begin != end) line(depth);
    out_ += close;
  }
  void line(int depth) { out_.append("\n").append(static_cast<size_t>(2 * depth), ' '); }

  std::string out_;
  bool pretty_;
};

}  // namespace

json::value text(std::string_view s) { return json::value(valid_utf8(s)); }
json::value text_or_null(const std::optional<std::string>& s) {
  return s ? text(*s) : json::value(nullptr);
}
json::value text_or_null(const std::string& s) {
  return s.empty() ? json::value(nullptr) : text(s);
}
// What is not a number of this world is not measured.
json::value number(const std::optional<double>& v) {
  return v && std::isfinite(*v) ? json::value(*v) : json::value(nullptr);
}
json::value rounded(const std::optional<double>& v, int decimals) {
  static constexpr std::array<double, 7> kPowers = {1, 10, 100, 1e3, 1e4, 1e5, 1e6};
  if (!v || !std::isfinite(*v)) return nullptr;
  const double power = kPowers.at(static_cast<size_t>(decimals));
  return std::round(*v * power) / power;
}

const json::value& member(const json::value& value, std::string_view key) {
  static const json::value kNull;
  const json::object* object = value.if_object();
  const json::value* found = object == nullptr ? nullptr : object->if_contains(key);
  return found == nullptr ? kNull : *found;
}

std::string_view severity_name(Severity s) {
  return s == Severity::kCritical ? "critical" : s == Severity::kWarning ? "warning" : "info";
}
std::string print_json(const json::value& value, bool pretty) {
  Printer printer(pretty);
  printer.print(value, 0);
  return printer.take();
}

}  // namespace stepscope::report
