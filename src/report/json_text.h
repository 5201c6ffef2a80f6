// Values as JSON, and JSON as text: what summary.json and the views are written with.
//
// Thread safety: pure functions. Invariant: what is no number of this world, and what is absent, is null.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/finding.h"

namespace stepscope::report {

namespace json = boost::json;

json::value text(std::string_view s);  // broken UTF-8 mended
json::value text_or_null(const std::optional<std::string>& s);
json::value text_or_null(const std::string& s);
json::value number(const std::optional<double>& v);
// At most `decimals` of them: views are not read to the last digit, and are sent often.
json::value rounded(const std::optional<double>& v, int decimals = 4);
template <typename Int>
json::value integer(const std::optional<Int>& v) {
  return v ? json::value(static_cast<int64_t>(*v)) : json::value(nullptr);
}
// Of an object; null where there is none, or value is no object.
const json::value& member(const json::value& value, std::string_view key);
std::string_view severity_name(Severity s);

// Numbers as people write them (Boost writes 3.8E-1). pretty: small objects on one line each; else all on one.
std::string print_json(const json::value& value, bool pretty);

}  // namespace stepscope::report
