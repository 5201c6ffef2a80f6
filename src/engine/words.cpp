#include "engine/words.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace stepscope::engine {
namespace {

std::string print(int decimals, double value, const char* unit) {
  std::array<char, 64> buffer;
  std::snprintf(buffer.data(), buffer.size(), "%.*f%s", decimals, value, unit);
  return buffer.data();
}

}  // namespace

std::string percent(double share) {
  return print(std::fabs(share) < 0.0995 ? 1 : 0, share * 100, " %");
}

std::string milliseconds(double ms) {
  if (ms >= 999.5) return print(ms >= 9950 ? 0 : 1, ms / 1000, " s");
  return print(ms >= 9.95 ? 0 : ms >= 0.995 ? 1 : 2, ms, " ms");
}

std::string bytes(double count) {
  if (std::fabs(count) < 1024) return print(0, count, " B");
  constexpr std::array kUnits = {" KB", " MB", " GB", " TB"};
  size_t unit = 0;
  double value = count / 1024;
  while (std::fabs(value) >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return print(std::fabs(value) < 9.95 ? 1 : 0, value, kUnits[unit]);
}

std::string number(double value) {
  return print(std::fabs(value - std::round(value)) < 0.05 ? 0 : 1, value, "");
}

std::string ranges(std::vector<int32_t> ranks) {
  std::sort(ranks.begin(), ranks.end());
  std::string out;
  for (size_t i = 0; i < ranks.size();) {
    size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (!out.empty()) out += ", ";
    out += std::to_string(ranks[i]);
    if (last > i) out += "-" + std::to_string(ranks[last]);
    i = last + 1;
  }
  return out;
}

std::string plural(int64_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

}  // namespace stepscope::engine
