#include "report/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace stepscope::report {
namespace {

struct CodePoint {
  char32_t value = 0;
  size_t bytes = 1;
  bool valid = false;
};

// One code point at the front of `text`, which is not empty. Overlong forms and surrogates are not
// valid.
CodePoint decode(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  char32_t value = lead & (0x7f >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3f);
  }
  constexpr std::array<char32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kLeast[bytes] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return {};
  return {value, bytes, true};
}

struct Range {
  char32_t first, last;
};
template <size_t N>
bool in(const std::array<Range, N>& ranges, char32_t c) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [c](const Range& r) { return c >= r.first && c <= r.last; });
}

// Controls, line and paragraph separators, zero-width and bidirectional marks, tags, private use,
// non-characters: what moves the cursor, reorders the line or shows nothing.
constexpr std::array kHidden = {
    Range{0x00, 0x1f},     Range{0x7f, 0xa0},       Range{0xad, 0xad},        Range{0x61c, 0x61c},
    Range{0x115f, 0x1160}, Range{0x17b4, 0x17b5},   Range{0x180b, 0x180f},    Range{0x2000, 0x200f},
    Range{0x2028, 0x202f}, Range{0x205f, 0x206f},   Range{0x3000, 0x3000},    Range{0x3164, 0x3164},
    Range{0xe000, 0xf8ff}, Range{0xfdd0, 0xfdef},   Range{0xfeff, 0xfeff},    Range{0xffa0, 0xffa0},
    Range{0xfff0, 0xffff}, Range{0x1d173, 0x1d17a}, Range{0xe0000, 0x10ffff},
};
// Letters that compose with the one before. Scripts whose marks are not here count a column too
// many for them.
constexpr std::array kCombining = {
    Range{0x300, 0x36f},   Range{0x483, 0x489},   Range{0x591, 0x5bd},   Range{0x610, 0x61a},
    Range{0x64b, 0x65f},   Range{0x1ab0, 0x1aff}, Range{0x1dc0, 0x1dff}, Range{0x20d0, 0x20ff},
    Range{0x3099, 0x309a}, Range{0xfe00, 0xfe0f}, Range{0xfe20, 0xfe2f},
};
constexpr std::array kWide = {
    Range{0x1100, 0x115e},   Range{0x231a, 0x231b},   Range{0x2329, 0x232a},
    Range{0x23e9, 0x23f3},   Range{0x25fd, 0x25fe},   Range{0x2600, 0x27bf},
    Range{0x2b1b, 0x2b1c},   Range{0x2b50, 0x2b55},   Range{0x2e80, 0xa4cf},
    Range{0xa960, 0xa97f},   Range{0xac00, 0xd7a3},   Range{0xf900, 0xfaff},
    Range{0xfe10, 0xfe19},   Range{0xfe30, 0xfe6f},   Range{0xff00, 0xff60},
    Range{0xffe0, 0xffe6},   Range{0x16fe0, 0x18dff}, Range{0x1aff0, 0x1b2ff},
    Range{0x1f000, 0x1faff}, Range{0x20000, 0x3fffd},
};

int columns_of(char32_t c) { return in(kCombining, c) ? 0 : in(kWide, c) ? 2 : 1; }

std::string escape(char32_t c) {
  if (c < 0x100) return fmt::format("\\x{:02x}", static_cast<uint32_t>(c));
  if (c < 0x10000) return fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
  return fmt::format("\\U{:08x}", static_cast<uint32_t>(c));
}

// The longest front of `text` that takes at most `width` columns, as bytes; at least one character.
size_t front(std::string_view text, int width) {
  size_t at = 0;
  for (int used = 0; at < text.size();) {
    const CodePoint c = decode(text.substr(at));
    used += columns_of(c.value);
    if (used > width && at > 0) break;
    at += c.bytes;
  }
  return at;
}

// Where a line that takes `room` columns of `text` ends: at the last blank, unless the word after
// it would not fit on a line of its own; such a word is broken where the line is full, after a
// slash where it has one.
size_t line_end(std::string_view text, int room, int width) {
  const size_t full = front(text, room);
  const size_t blank = text.rfind(' ', full);
  if (blank != std::string_view::npos && blank > 0) {
    const std::string_view word = text.substr(blank + 1, text.find(' ', blank + 1) - blank - 1);
    if (full - blank <= 8 || columns(word) <= width) return blank;
  }
  const size_t slash = text.rfind('/', full - 1);
  return slash != std::string_view::npos && slash + 1 > full / 2 ? slash + 1 : full;
}

}  // namespace

std::string valid_utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const CodePoint c = decode(text);
    if (c.valid)
      out += text.substr(0, c.bytes);
    else
      out += "\xef\xbf\xbd";
    text.remove_prefix(c.bytes);
  }
  return out;
}

std::string visible(std::string_view text, bool unicode) {
  std::string out;
  while (!text.empty()) {
    const CodePoint c = decode(text);
    if (!c.valid)
      out += escape(static_cast<unsigned char>(text[0]));
    else if (in(kHidden, c.value) || (!unicode && c.value > 0x7e))
      out += escape(c.value);
    else
      out += text.substr(0, c.bytes);
    text.remove_prefix(c.bytes);
  }
  return out;
}

int columns(std::string_view text) {
  int used = 0;
  while (!text.empty()) {
    const CodePoint c = decode(text);
    used += columns_of(c.value);
    text.remove_prefix(c.bytes);
  }
  return used;
}

std::string pad_left(std::string_view text, int width) {
  return std::string(static_cast<size_t>(std::max(0, width - columns(text))), ' ').append(text);
}
std::string pad_right(std::string_view text, int width) {
  return std::string(text).append(static_cast<size_t>(std::max(0, width - columns(text))), ' ');
}

std::string cut(std::string_view text, int width, bool unicode) {
  if (columns(text) <= width) return std::string(text);
  const std::string_view dots = unicode ? "\xe2\x80\xa6" : "...";
  const int room = std::max(1, width - (unicode ? 1 : 3));
  return std::string(text.substr(0, front(text, room))).append(dots);
}

std::vector<std::string> fold(std::string_view text, int first_width, int width) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const int room = std::max(8, lines.empty() ? first_width : width);
    size_t end = text.size();
    if (columns(text) > room) {
      end = line_end(text, room, width);
    }
    std::string_view line = text.substr(0, end);
    while (line.ends_with(' ')) line.remove_suffix(1);
    lines.emplace_back(line);
    text.remove_prefix(end);
    while (text.starts_with(' ')) text.remove_prefix(1);
  }
  return lines;
}

}  // namespace stepscope::report
