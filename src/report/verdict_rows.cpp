// The verdict, why, what to try, and what else was found: the first lines of the card and of the status.
#include <fmt/format.h>

#include <cmath>

#include "engine/words.h"
#include "report/bar.h"
#include "report/page.h"
#include "report/text.h"

namespace stepscope::report {
namespace {

constexpr size_t kAdviceLines = 4, kMostAlso = 2;

// A number of a finding in the words of its unit.
std::string quantity(const Evidence& e) {
  if (e.unit == "share") return percent(e.value);
  if (e.unit == "ms") return duration(e.value);
  if (e.unit == "bytes") return engine::bytes(e.value);
  if (e.unit == "bytes/step") return engine::bytes(e.value) + " a step";
  return engine::number(e.value);
}

// What the title does not say already.
std::vector<std::string> evidence_parts(const Finding& f) {
  std::vector<std::string> parts;
  const Evidence* low = nullptr;
  const Evidence* high = nullptr;
  for (const Evidence& e : f.evidence) {
    if (e.name == "share_low") low = &e;
    if (e.name == "share_high") high = &e;
  }
  for (const Evidence& e : f.evidence) {
    if (&e == high || e.name == "ranks" || e.name == "steady_steps" || !std::isfinite(e.value))
      continue;
    if (e.unit == "share" && (e.value == 0 || f.share == e.value)) continue;
    if (&e != low || high == nullptr) {
      parts.push_back(readable(e.name) + " " + quantity(e));
      continue;
    }
    const std::string from = percent(low->value), to = percent(high->value);
    if (from != to) parts.push_back(from + " to " + to + " (95 % interval)");
  }
  return parts;
}

// The first, and as many more as a few lines hold.
void advice_rows(Page& page, const Finding& f) {
  size_t lines = 0;
  for (const Advice& a : f.advice) {
    if (a.gain && *a.gain <= 0) continue;  // what has no effect here is in summary.json
    const bool worth_saying = a.gain && *a.gain >= 0.01;
    const std::string text =
        page.show(a.text) + (worth_saying ? " Saves up to " + percent(*a.gain) + "." : "");
    const size_t more = fold(text, page.width() - Page::kLabel, page.width() - Page::kLabel).size();
    if (lines > 0 && lines + more > kAdviceLines) break;
    lines += more;
    page.row("try", text);
  }
}

}  // namespace

std::string severity_word(const Finding& finding) {
  const std::string word = finding.severity == Severity::kCritical  ? "critical"
                           : finding.severity == Severity::kWarning ? "warning"
                                                                    : "info";
  return word + (finding.confidence == "possible" ? ", possible" : "");
}

void verdict_rows(Page& page, const Summary& summary) {
  const Finding& f = summary.verdict;
  const std::string code = page.show(f.code);
  const std::string word = severity_word(f);
  const int indent = columns(code) + 2;
  const auto lines =
      fold(page.show(f.title), page.width() - indent - columns(word) - 2, page.width() - indent);
  const std::string first = lines.empty() ? "" : lines.front();
  const int gap = page.width() - indent - columns(first) - columns(word);
  page.line(page.paint(code, f.severity) + "  " + first +
            std::string(static_cast<size_t>(std::max(2, gap)), ' ') + page.paint(word, f.severity));
  for (size_t i = 1; i < lines.size(); ++i)
    page.line(std::string(static_cast<size_t>(indent), ' ') + lines[i]);

  page.row("evidence", page.one_line(evidence_parts(f)));
  advice_rows(page, f);
  size_t also = 0;
  for (size_t i = 1; i < summary.findings.size(); ++i) {
    const Finding& other = summary.findings[i];
    if (other.severity == Severity::kInfo || ++also > kMostAlso) continue;
    page.row("also",
             page.show(other.code) + " (" + severity_word(other) + ")  " + page.show(other.title));
  }
  if (also > kMostAlso) page.row("", fmt::format("... and {} more", also - kMostAlso));
}

}  // namespace stepscope::report
