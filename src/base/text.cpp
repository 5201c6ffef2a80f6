#include "base/text.h"

#include <cerrno>
#include <system_error>

namespace stepscope {

std::string errno_text() { return errno_text(errno); }
std::string errno_text(int error) { return std::generic_category().message(error); }

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::map<std::string, std::string> parse_key_values(std::string_view text) {
  std::map<std::string, std::string> values;
  for (std::string_view line : split(text, '\n')) {
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    std::string value;
    for (size_t i = equals + 1; i < line.size(); ++i) {
      if (line[i] == '\\' && i + 1 < line.size())
        value += line[++i] == 'n' ? '\n' : line[i];
      else
        value += line[i];
    }
    values[std::string(line.substr(0, equals))] = std::move(value);
  }
  return values;
}

std::string format_key_values(const std::vector<std::pair<std::string, std::string>>& values) {
  std::string text;
  for (const auto& [key, value] : values) {
    text += key + "=";
    for (const char c : value) {
      if (c == '\n')
        text += "\\n";
      else if (c == '\\')
        text += "\\\\";
      else
        text += c;
    }
    text += '\n';
  }
  return text;
}

std::string shell_quote(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos)
    return std::string(word);
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'')
      quoted += "'\\''";
    else
      quoted += c;
  }
  return quoted + "'";
}

std::string printable(std::string_view text, size_t max_bytes) {
  std::string out(text.substr(0, max_bytes));
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return out;
}

std::optional<int64_t> parse_duration_s(std::string_view text) {
  if (text.empty()) return std::nullopt;
  int64_t unit = 1;
  switch (text.back()) {
    case 's':
      unit = 1;
      break;
    case 'm':
      unit = 60;
      break;
    case 'h':
      unit = 3600;
      break;
    case 'd':
      unit = 86400;
      break;
    default:
      unit = 0;
  }
  if (unit != 0) text.remove_suffix(1);
  const auto count = parse_number<int64_t>(text);
  constexpr int64_t kMost = 1'000'000;  // of any unit: some thousand years of days
  if (!count || *count < 0 || *count > kMost * 86400) return std::nullopt;
  if (unit > 1 && *count > kMost) return std::nullopt;
  return *count * (unit == 0 ? 1 : unit);
}

}  // namespace stepscope
