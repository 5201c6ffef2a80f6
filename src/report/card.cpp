// The card: 80 columns, about 20 lines. Verdict, why, what to try; the step and its phases; ranks;
// resources; what is not known; where the files are and what to type next.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "engine/words.h"
#include "report/bar.h"
#include "report/page.h"
#include "report/report.h"
#include "report/text.h"

namespace stepscope::report {
namespace {

constexpr size_t kMostRanks = 8, kMostSentences = 4;

std::string plural(int64_t count, const char* one, const char* many) {
  return engine::plural(count, one, many);
}

class Card : private Page {
 public:
  Card(const Summary& summary, const CardStyle& style) : Page(style), s_(summary) {}

  std::string text() {
    verdict_rows(*this, s_);
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
    return take();
  }

 private:
  void step() {
    if (s_.steps.mean_ms) {
      row("step", duration(*s_.steps.mean_ms) + " mean, " +
                      duration(s_.steps.median_ms.value_or(0)) + " median, " +
                      duration(s_.steps.p95_ms.value_or(0)) + " p95" + micro_steps() +
                      (s_.clock == "host" ? host_note() : ""));
      bar();
    } else {
      row("step",
          s_.steps.count == 0 ? "no step was seen" : "no steady step: the first ones are warm-up");
    }
    counts();
  }

  // A loader that looks ahead shifts one batch: that is no accumulation.
  std::string micro_steps() const {
    constexpr double kAccumulates = 1.2;
    const double each = s_.steps.micro_steps.value_or(1);
    return each < kAccumulates ? "" : fmt::format(", {:.3g} micro-steps", each);
  }

  std::string host_note() const {
    for (const NotMeasured& n : s_.not_measured)
      if (n.what == "device time") return " (host time)";
    return "";
  }

  void bar() {
    const int cells = width() - (unicode() ? 2 : 4);
    const auto parts = bar_parts(s_, cells, unicode());
    if (parts.empty()) return;
    std::string text = unicode() ? "  " : "  [";
    for (const BarPart& p : parts) {
      std::string run;
      for (int i = 0; i < p.cells; ++i) run += p.glyph;
      text += p.of_verdict ? paint(run, s_.verdict.severity) : run;
    }
    line(text + (unicode() ? "" : "]"));
    for (const std::string& entry : legend(parts, width() - 2)) line("  " + entry);
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
    const int column = std::min(9, (width() - 11) / 7);
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
    row(label, columns(text + note) > width() - kLabel ? text : text + note);
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
};

}  // namespace

std::string card(const Summary& summary, const CardStyle& style) {
  return Card(summary, style).text();
}

}  // namespace stepscope::report
