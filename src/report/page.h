// Rows of text for a terminal: a label and what it says, folded to the width. What the card and the status are
// made of.
//
// Thread safety: one owner. Invariant: nothing that a stranger's text holds drives the terminal (show()).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/report.h"

namespace stepscope::report {

class Page {
 public:
  static constexpr int kLabel = 16;  // columns before the text of a row

  explicit Page(const CardStyle& style);

  std::string show(std::string_view text) const;
  // Colour is severity only, and the word stands beside it.
  std::string paint(const std::string& text, Severity severity) const;

  void line(std::string text);
  void row(const std::string& label, const std::string& text);
  // Something to copy: on a line of its own rather than folded.
  void row_whole(const std::string& label, const std::string& text);
  // As many parts as a line takes; the others are in summary.json.
  std::string one_line(const std::vector<std::string>& parts) const;

  int width() const { return width_; }
  bool unicode() const { return style_.unicode; }
  std::string take() { return std::move(out_); }

 private:
  const CardStyle style_;
  const int width_;
  std::string out_;
};

// The first lines of every view: the verdict, its evidence and advice, and what else was found.
void verdict_rows(Page& page, const Summary& summary);
std::string severity_word(const Finding& finding);  // "critical, possible"

std::string time_span(double seconds);   // "12 s", "3.5 min", "2.0 h"
std::string readable(std::string name);  // "input_ms" reads "input": the value carries its unit
std::string rate(double per_s);

}  // namespace stepscope::report
