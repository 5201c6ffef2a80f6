#include "report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "report/bar.h"
#include "report/text.h"

namespace stepscope::report {

Page::Page(const CardStyle& style) : style_(style), width_(std::max(style.width, 60)) {}

std::string Page::show(std::string_view text) const { return visible(text, style_.unicode); }

std::string Page::paint(const std::string& text, Severity severity) const {
  if (!style_.colour || severity == Severity::kInfo) return text;
  return (severity == Severity::kCritical ? "\x1b[1;31m" : "\x1b[1;33m") + text + "\x1b[0m";
}

void Page::line(std::string text) {
  while (text.ends_with(' ')) text.pop_back();
  out_ += text + "\n";
}

void Page::row(const std::string& label, const std::string& text) {
  std::string head = "  " + pad_right(label, kLabel - 2);
  for (const std::string& part : fold(text, width_ - kLabel, width_ - kLabel)) {
    line(head + part);
    head.assign(kLabel, ' ');
  }
}

std::string Page::one_line(const std::vector<std::string>& parts) const {
  std::string text;
  for (const std::string& part : parts) {
    const std::string longer = text + (text.empty() ? "" : ", ") + show(part);
    if (columns(longer) > width_ - kLabel) break;
    text = longer;
  }
  return text;
}

void Page::row_whole(const std::string& label, const std::string& text) {
  if (columns(text) <= width_ - kLabel) return row(label, text);
  line("  " + label);
  const int indent = columns(text) <= width_ - 2 ? 2 : 0;
  for (const std::string& part : fold(text, width_ - indent, width_ - indent))
    line(std::string(static_cast<size_t>(indent), ' ') + part);
}

std::string time_span(double seconds) {
  if (seconds < 120) return duration(seconds * 1e3);
  return seconds < 7200 ? fmt::format("{:.1f} min", seconds / 60)
                        : fmt::format("{:.1f} h", seconds / 3600);
}

std::string rate(double per_s) {
  const double size = std::fabs(per_s);
  return fmt::format("{:.{}f}", per_s, size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

std::string readable(std::string name) {
  for (const char* unit : {"_share", "_ms", "_bytes"})
    if (name.ends_with(unit)) name.resize(name.size() - std::string(unit).size());
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

}  // namespace stepscope::report
