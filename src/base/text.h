// Words and numbers as text: what the command line and the small key=value files of a run need.
//
// Thread safety: reentrant; no state, no locale.
#pragma once

#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepscope {

std::string errno_text();  // of errno
std::string errno_text(int error);
std::string_view trim(std::string_view text);
std::vector<std::string_view> split(std::string_view text, char separator);

std::string lower_case(std::string_view text);  // of ASCII letters

// Lines `key=value`. In a value a backslash and a line break are written \\ and \n. Lines without =
// are skipped.
std::map<std::string, std::string> parse_key_values(std::string_view text);
std::string format_key_values(const std::vector<std::pair<std::string, std::string>>& values);

// The word as a POSIX shell reads it back; plain words stay as they are.
std::string shell_quote(std::string_view word);

// Control characters become '?', so that a name from elsewhere cannot drive the terminal.
std::string printable(std::string_view text, size_t max_bytes = 4096);

// The whole text is one number.
template <typename T>
std::optional<T> parse_number(std::string_view text, int base = 10) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "90", "30s", "15m", "12h", "7d": seconds.
std::optional<int64_t> parse_duration_s(std::string_view text);

}  // namespace stepscope
