// The card: 80 columns, about 20 lines. Verdict, why, what to try; the step and its phases; ranks;
// resources; what is not known; where the files are and what to type next.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "engine/words.h"
#include "report/bar.h"
#include "report/report.h"
#include "report/text.h"

namespace stepscope::report {
namespace {

constexpr int kLabel = 16;  // columns before the text of a row
constexpr size_t kMostRanks = 8, kAdviceLines = 4, kMostAlso = 2, kMostSentences = 4;

const char* severity_word(Severity s) {
  return s == Severity::kCritical ? "critical" : s == Severity::kWarning ? "warning" : "info";
}

std::string plural(int64_t count, const char* one, const char* many) {
  return engine::plural(count, one, many);
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

// A number of a finding in the words of its unit.
std::string quantity(const Evidence& e) {
  if (e.unit == "share") return percent(e.value);
  if (e.unit == "ms") return duration(e.value);
  if (e.unit == "bytes") return engine::bytes(e.value);
  if (e.unit == "bytes/step") return engine::bytes(e.value) + " a step";
  return engine::number(e.value);
}

// "input_ms" reads "input", "epoch_start_share" reads "epoch start": the value carries its unit.
std::string readable(std::string name) {
  for (const char* unit : {"_share", "_ms", "_bytes"})
    if (name.ends_with(unit)) name.resize(name.size() - std::string(unit).size());
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
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
    if (e.unit == "share" && (e.value == 0 || (f.share == e.value && e.name.ends_with("_share"))))
      continue;
    if (&e != low || high == nullptr) {
      parts.push_back(readable(e.name) + " " + quantity(e));
      continue;
    }
    const std::string from = percent(low->value), to = percent(high->value);
    if (from != to) parts.push_back(from + " to " + to + " (95 % interval)");
  }
  return parts;
}

class Card {
 public:
  Card(const Summary& summary, const CardStyle& style)
      : s_(summary), style_(style), width_(std::max(style.width, 60)) {}

  std::string text() {
    verdict();
    line("");
    step();
    if (s_.ranks.size() > 1) {
      line("");
      ranks();
    }
    line("");
    resources();
    gaps();
    ends();
    return std::move(out_);
  }

 private:
  std::string show(std::string_view text) const { return visible(text, style_.unicode); }

  // Colour is severity only, and the word stands beside it.
  std::string paint(const std::string& text, Severity severity) const {
    if (!style_.colour || severity == Severity::kInfo) return text;
    return (severity == Severity::kCritical ? "\x1b[1;31m" : "\x1b[1;33m") + text + "\x1b[0m";
  }

  void line(std::string text) {
    while (text.ends_with(' ')) text.pop_back();
    out_ += text + "\n";
  }

  void row(const std::string& label, const std::string& text) {
    std::string head = "  " + pad_right(label, kLabel - 2);
    for (const std::string& part : fold(text, width_ - kLabel, width_ - kLabel)) {
      line(head + part);
      head.assign(kLabel, ' ');
    }
  }

  // As many parts as a line takes; the others are in summary.json.
  std::string one_line(const std::vector<std::string>& parts) const {
    std::string text;
    for (const std::string& part : parts) {
      const std::string longer = text + (text.empty() ? "" : ", ") + show(part);
      if (columns(longer) > width_ - kLabel) break;
      text = longer;
    }
    return text;
  }

  // Something to copy: on a line of its own rather than folded.
  void row_whole(const std::string& label, const std::string& text) {
    if (columns(text) <= width_ - kLabel) return row(label, text);
    line("  " + label);
    const int indent = columns(text) <= width_ - 2 ? 2 : 0;
    for (const std::string& part : fold(text, width_ - indent, width_ - indent))
      line(std::string(static_cast<size_t>(indent), ' ') + part);
  }

  void verdict() {
    const Finding& f = s_.verdict;
    const std::string code = show(f.code);
    const std::string word =
        severity_word(f.severity) + std::string(f.confidence == "possible" ? ", possible" : "");
    const int indent = columns(code) + 2;
    const auto lines = fold(show(f.title), width_ - indent - columns(word) - 2, width_ - indent);
    const std::string first = lines.empty() ? "" : lines.front();
    const int gap = width_ - indent - columns(first) - columns(word);
    line(paint(code, f.severity) + "  " + first +
         std::string(static_cast<size_t>(std::max(2, gap)), ' ') + paint(word, f.severity));
    for (size_t i = 1; i < lines.size(); ++i)
      line(std::string(static_cast<size_t>(indent), ' ') + lines[i]);

    row("evidence", one_line(evidence_parts(f)));
    advice(f);
    size_t also = 0;
    for (size_t i = 1; i < s_.findings.size(); ++i) {
      const Finding& other = s_.findings[i];
      if (other.severity == Severity::kInfo || ++also > kMostAlso) continue;
      row("also",
          show(other.code) + " (" + severity_word(other.severity) + ")  " + show(other.title));
    }
    if (also > kMostAlso) row("", fmt::format("... and {} more", also - kMostAlso));
  }

  // The first, and as many more as a few lines hold.
  void advice(const Finding& f) {
    size_t lines = 0;
    for (const Advice& a : f.advice) {
      if (a.gain && *a.gain <= 0) continue;  // what has no effect here is in summary.json
      const bool worth_saying = a.gain && *a.gain >= 0.01;
      const std::string text =
          show(a.text) + (worth_saying ? " Saves up to " + percent(*a.gain) + "." : "");
      const size_t more = fold(text, width_ - kLabel, width_ - kLabel).size();
      if (lines > 0 && lines + more > kAdviceLines) break;
      lines += more;
      row("try", text);
    }
  }

  void step() {
    if (s_.steps.mean_ms) {
      row("step", duration(*s_.steps.mean_ms) + " mean, " +
                      duration(s_.steps.median_ms.value_or(0)) + " median, " +
                      duration(s_.steps.p95_ms.value_or(0)) + " p95" +
                      (s_.clock == "host" ? host_note() : ""));
      bar();
    } else {
      row("step",
          s_.steps.count == 0 ? "no step was seen" : "no steady step: the first ones are warm-up");
    }
    counts();
  }

  std::string host_note() const {
    for (const NotMeasured& n : s_.not_measured)
      if (n.what == "device time") return " (host time)";
    return "";
  }

  void bar() {
    const int cells = width_ - (style_.unicode ? 2 : 4);
    const auto parts = bar_parts(s_, cells, style_.unicode);
    if (parts.empty()) return;
    std::string text = style_.unicode ? "  " : "  [";
    for (const BarPart& p : parts) {
      std::string run;
      for (int i = 0; i < p.cells; ++i) run += p.glyph;
      text += p.of_verdict ? paint(run, s_.verdict.severity) : run;
    }
    line(text + (style_.unicode ? "" : "]"));
    for (const std::string& entry : legend(parts, width_ - 2)) line("  " + entry);
    std::vector<std::string> inside;
    for (const PartRow& p : s_.parts)
      if (p.share && *p.share >= 0.01)
        inside.push_back(readable(p.name) + " " + duration(*p.mean_ms));
    row("of which", one_line(inside));
  }

  void counts() {
    const StepsRow& steps = s_.steps;
    std::string text;
    if (steps.warmup > 0) {
      text = fmt::format("{} of {}", steps.warmup, plural(steps.count, "step", "steps"));
      if (steps.warmup_mean_ms) text += ", " + duration(*steps.warmup_mean_ms) + " each";
      if (steps.mean_ms) text += ", not in the figures above";
      row("warm-up", text);
    }
    text.clear();
    const auto add = [&text](int64_t count, const char* what) {
      if (count > 0) text += (text.empty() ? "" : ", ") + plural(count, "step ", "steps ") + what;
    };
    add(steps.failed, "failed");
    add(steps.profiled, "ran under a profiler");
    add(steps.incomplete, "lost records");
    if (!text.empty()) row("left out", text);
  }

  static std::optional<double> phase_ms(const RankRow& rank, Phase phase) {
    return rank.phases[static_cast<size_t>(phase)].mean_ms;
  }

  void ranks() {
    std::vector<const RankRow*> order;
    for (const RankRow& r : s_.ranks) order.push_back(&r);
    // The verdict's rank, then by what each did itself: a rank that waits for others is not the
    // slow one.
    std::stable_sort(order.begin(), order.end(), [&](const RankRow* a, const RankRow* b) {
      const bool named_a = s_.verdict.rank == a->rank, named_b = s_.verdict.rank == b->rank;
      if (named_a != named_b) return named_a;
      return a->own_ms.value_or(-1) > b->own_ms.value_or(-1);
    });
    double largest = 0;
    for (const RankRow* r : order) largest = std::max(largest, r->steps.mean_ms.value_or(0));
    const bool seconds = largest >= 1e5;
    const double unit = seconds ? 1e3 : 1;
    const double top = largest / unit;
    const int decimals = top >= 1000 ? 0 : top >= 10 ? 1 : top >= 1 ? 2 : 3;
    const int column = std::min(9, (width_ - 11) / 7);
    const auto value = [&](const std::optional<double>& ms) {
      return pad_left(ms ? fmt::format("{:.{}f}", *ms / unit, decimals) : "-", column);
    };
    std::string head = "   RANK";
    for (const char* name : {"TOTAL", "INPUT", "FWD", "BWD", "SYNC", "OPT", "OTHER"})
      head += pad_left(name, column);
    line(head + (seconds ? "  s" : "  ms"));
    for (size_t i = 0; i < order.size() && i < kMostRanks; ++i) {
      const RankRow& r = *order[i];
      line(pad_left(std::to_string(r.rank), 7) + value(r.steps.mean_ms) +
           value(phase_ms(r, Phase::kInput)) + value(phase_ms(r, Phase::kForward)) +
           value(phase_ms(r, Phase::kBackward)) + value(phase_ms(r, Phase::kSync)) +
           value(phase_ms(r, Phase::kOptimizer)) + value(r.rest_ms));
    }
    if (order.size() > kMostRanks)
      line(fmt::format("    ... and {} more", order.size() - kMostRanks));
  }

  void reading(const char* label, const char* name,
               const std::function<std::string(double)>& format, const char* unit,
               const char* limit_word) {
    const Reading& r = s_.resources.at(name);
    if (!r.measured())
      return row(label, "not measured" + (r.note.empty() ? "" : ": " + show(r.note)));
    std::string text =
        format(*r.average) + unit + " average, " + format(r.peak.value_or(*r.average)) + " peak";
    if (r.limit) text += " of " + format(*r.limit) + limit_word;
    const std::string note = r.note.empty() ? "" : " (" + show(r.note) + ")";
    row(label, columns(text + note) > width_ - kLabel ? text : text + note);
  }

  void resources() {
    reading("cpu", "cpu", engine::number, " cores", " usable");
    reading("memory", "memory", engine::bytes, "", "");
    reading("gpu", "gpus", percent, "", "");
    std::string text;
    if (s_.samples_per_s) text = rate(*s_.samples_per_s) + " samples/s, ";
    text += s_.steps_per_s ? rate(*s_.steps_per_s) + " steps/s" : "-";
    if (s_.steps_per_s && s_.throughput_over != "steady steps")
      text += " over " + s_.throughput_over;
    row("throughput", text);
  }

  void sentences(const char* label, const std::vector<std::string>& all) {
    for (size_t i = 0; i < all.size() && i < kMostSentences; ++i) row(label, show(all[i]));
    if (all.size() > kMostSentences)
      row("", fmt::format("... and {} more", all.size() - kMostSentences));
  }

  void gaps() {
    std::string text;
    for (const NotMeasured& n : s_.not_measured) {
      if (s_.resources.contains(n.what)) continue;  // said in its own line
      const std::string what = n.what == "samples_per_s" ? "samples/s" : show(n.what);
      text += (text.empty() ? "" : "; ") + what + " (" + show(n.why) + ")";
    }
    if (!text.empty()) row("not measured", text);
    sentences("not observed", s_.unobserved);
    if (s_.records_dropped > 0)
      row("dropped", fmt::format("{} of {} events: about {:.0f} steps are missing in all counts",
                                 s_.records_dropped, s_.records_written + s_.records_dropped,
                                 missing_steps()));
    sentences("notice", s_.notices);
  }

  double missing_steps() const {
    const double written = static_cast<double>(std::max<int64_t>(s_.records_written, 1));
    return static_cast<double>(s_.records_dropped) * static_cast<double>(s_.steps.count) / written;
  }

  void ends() {
    std::string text = show(s_.name);
    const auto add = [&text](const std::string& part) {
      text += (text.empty() ? "" : ", ") + part;
    };
    if (s_.rank_count > 1) add(fmt::format("{} ranks", s_.rank_count));
    add(time_span(s_.duration_s));
    if (s_.live)
      add("still running");
    else if (s_.exit_code)
      add(fmt::format("exit code {}", *s_.exit_code));
    else
      add("exit code not known");
    row("run", text);
    if (!s_.folder.empty()) row_whole("files", show(s_.folder));
    row_whole("next", show(s_.next));
  }

  const Summary& s_;
  const CardStyle style_;
  const int width_;
  std::string out_;
};

}  // namespace

std::string card(const Summary& summary, const CardStyle& style) {
  return Card(summary, style).text();
}

}  // namespace stepscope::report
