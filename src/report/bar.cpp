#include "report/bar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "engine/words.h"
#include "report/text.h"

namespace stepscope::report {
namespace {

// In the order of the phases. Letters where there are no blocks: a bar that reads aloud.
constexpr std::array<const char*, kPhaseCount> kAscii = {"I", "H", "F", "B", "S", "O",
                                                         "C", "V", "K", "G", "P", "."};
constexpr std::array<const char*, kPhaseCount> kBlocks = {"█", "▙", "▓", "▒", "▚", "░",
                                                          "▀", "▞", "▌", "▄", "▐", "·"};

constexpr int kLongestName = 16;
constexpr size_t kMostParts = 12;

std::string glyph_of(const PhaseRow& row, size_t index, size_t user_index, bool unicode) {
  if (!row.user) return unicode ? kBlocks[index] : kAscii[index];
  return std::string(1, static_cast<char>('a' + user_index % 26));
}

// Largest remainder, and never none.
void deal_cells(std::vector<BarPart>& parts, int width) {
  const double sum = std::accumulate(parts.begin(), parts.end(), 0.0,
                                     [](double a, const BarPart& p) { return a + p.share; });
  if (parts.empty() || sum <= 0) return;
  std::vector<std::pair<double, size_t>> remainders;
  int left = width;
  for (size_t i = 0; i < parts.size(); ++i) {
    const double exact = parts[i].share / sum * width;
    parts[i].cells = std::max(1, static_cast<int>(exact));
    left -= parts[i].cells;
    remainders.emplace_back(exact - parts[i].cells, i);
  }
  std::sort(remainders.rbegin(), remainders.rend());
  for (size_t i = 0; left > 0; i = (i + 1) % remainders.size(), --left)
    ++parts[remainders[i].second].cells;
  while (left < 0) {
    const auto widest =
        std::max_element(parts.begin(), parts.end(),
                         [](const BarPart& a, const BarPart& b) { return a.cells < b.cells; });
    --widest->cells;
    ++left;
  }
}

// The smallest of many phases make one part of their own.
void join_smallest(std::vector<BarPart>& parts) {
  if (parts.size() <= kMostParts) return;
  std::vector<double> shares;
  for (const BarPart& p : parts) shares.push_back(p.share);
  std::nth_element(shares.begin(), shares.begin() + kMostParts - 2, shares.end(), std::greater<>());
  const double least = shares[kMostParts - 2];
  BarPart rest{"", "+", 0, 0, 0, false};
  size_t joined = 0;
  std::vector<BarPart> kept;
  for (BarPart& p : parts) {
    if (kept.size() + 1 < kMostParts && p.share >= least) {
      kept.push_back(std::move(p));
    } else {
      rest.share += p.share;
      rest.mean_ms += p.mean_ms;
      ++joined;
    }
  }
  rest.name = fmt::format("{} more", joined);
  kept.push_back(std::move(rest));
  parts = std::move(kept);
}

}  // namespace

std::string duration(double ms) {
  const double value = ms < 999.5 ? ms : ms / 1000;
  const char* unit = ms < 999.5 ? "ms" : "s";
  const int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : value >= 0.9995 ? 2 : 3;
  return fmt::format("{:.{}f} {}", value, decimals, unit);
}

std::string percent(double share) { return engine::percent(share); }

std::vector<BarPart> bar_parts(const Summary& summary, int width, bool unicode) {
  std::vector<BarPart> parts;
  size_t index = 0, user_index = 0;
  for (const PhaseRow& row : summary.phases) {
    const std::string glyph = glyph_of(row, index, user_index, unicode);
    user_index += row.user ? 1 : 0;
    ++index;
    if (!row.share || *row.share < kLeastShare) continue;
    parts.push_back({cut(visible(row.name, unicode), kLongestName, unicode), glyph, *row.share,
                     row.mean_ms.value_or(0), 0, summary.verdict.phase == row.name});
  }
  join_smallest(parts);
  deal_cells(parts, width);
  return parts;
}

std::vector<std::string> legend(const std::vector<BarPart>& parts, int width) {
  int name = 0, share = 0, ms = 0;
  for (const BarPart& p : parts) {
    name = std::max(name, columns(p.name));
    share = std::max(share, columns(percent(p.share)));
    ms = std::max(ms, columns(duration(p.mean_ms)));
  }
  constexpr int kGap = 3;
  const int cell = 2 + name + 2 + share + 2 + ms;
  const int across = std::clamp((width + kGap) / (cell + kGap), 1, 3);
  std::vector<std::string> lines;
  int in_line = across;
  for (const BarPart& p : parts) {
    if (in_line == across) {
      lines.emplace_back();
      in_line = 0;
    }
    if (in_line++ > 0) lines.back().append(kGap, ' ');
    lines.back() += p.glyph + " " + pad_right(p.name, name) + "  " +
                    pad_left(percent(p.share), share) + "  " + pad_left(duration(p.mean_ms), ms);
  }
  return lines;
}

}  // namespace stepscope::report
