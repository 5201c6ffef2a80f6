// The card of a comparison: verdict and interval, where it comes from, a line a phase, ranks, and what else differs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "base/text.h"
#include "engine/words.h"
#include "report/bar.h"
#include "report/difference.h"
#include "report/page.h"
#include "report/text.h"

namespace stepscope::report {
namespace {

constexpr size_t kMostRanks = 8, kLeastRanks = 3;
constexpr double kShownMs = 0.0005;
constexpr int kName = 15, kColumn = 9, kInterval = 20;

std::string signed_percent(double share) {
  return (share < 0 ? "-" : "+") + percent(std::fabs(share));
}

class DifferenceCard : private Page {
 public:
  DifferenceCard(const Difference& difference, const CardStyle& style)
      : Page(style), d_(difference) {}

  std::string text() {
    verdict();
    line("");
    phases();
    if (!d_.change.ranks.empty()) {
      line("");
      ranks();
    }
    line("");
    rest();
    return take();
  }

 private:
  void verdict() {
    const engine::RunChange& change = d_.change;
    const Severity severity = d_.exceeded           ? Severity::kCritical
                              : d_.code == "SLOWER" ? Severity::kWarning
                                                    : Severity::kInfo;
    const std::string word = d_.exceeded        ? "past the limit"
                             : d_.max_slowdown  ? "within the limit"
                             : change.step.real ? "real"
                                                : "no real change";
    const int indent = columns(d_.code) + 2;
    const auto lines = fold(show(d_.title), width() - indent - columns(word) - 2, width() - indent);
    const std::string first = lines.empty() ? "" : lines.front();
    const int gap = width() - indent - columns(first) - columns(word);
    line(paint(d_.code, severity) + "  " + first +
         std::string(static_cast<size_t>(std::max(2, gap)), ' ') + paint(word, severity));
    for (size_t i = 1; i < lines.size(); ++i)
      line(std::string(static_cast<size_t>(indent), ' ') + lines[i]);
    if (change.low_share)
      row("interval", signed_percent(*change.low_share) + " to " +
                          signed_percent(*change.high_share) + " (99 %), from " +
                          engine::plural(change.steps_a, "steady step", "steady steps") + " and " +
                          std::to_string(change.steps_b) + "; a change of " +
                          percent(*change.detectable_share) + " would have shown");
    if (d_.max_slowdown) row("limit", percent(*d_.max_slowdown) + " slower, if it is real");
    if (!d_.from.empty()) row("from", show(d_.from));
    for (const engine::Incomparable& one : d_.remarks)
      row(one.obstacle == engine::Obstacle::kRemark ? "note" : "not the same", show(one.text));
  }

  struct Unit {
    double ms = 1;
    int decimals = 2;
  };
  Unit unit_of(double largest_ms) const {
    if (largest_ms >= 1e5) return {1e3, largest_ms >= 1e6 ? 1 : 2};
    return {1, largest_ms >= 1e4 ? 0 : largest_ms >= 1000 ? 1 : largest_ms >= 1 ? 2 : 3};
  }

  std::string cell(const std::optional<double>& ms, const Unit& unit, bool sign) const {
    if (!ms) return pad_left("-", kColumn);
    return pad_left(sign ? fmt::format("{:+.{}f}", *ms / unit.ms, unit.decimals)
                         : fmt::format("{:.{}f}", *ms / unit.ms, unit.decimals),
                    kColumn);
  }

  // A, B, change, in percent of A, interval, word.
  void change_line(const std::string& name, const engine::Change& c, const Unit& unit) {
    const bool relative = c.change_ms && c.a_ms && *c.a_ms >= kShownMs;
    std::string interval = "-";
    if (c.low_ms)
      interval = fmt::format("{:+.{}f} to {:+.{}f}", *c.low_ms / unit.ms, unit.decimals,
                             *c.high_ms / unit.ms, unit.decimals);
    const std::string word = !c.change_ms ? "-" : c.real ? "real" : "noise";
    line("  " + pad_right(cut(show(name), kName - 2, unicode()), kName - 2) +
         cell(c.a_ms, unit, false) + cell(c.b_ms, unit, false) + cell(c.change_ms, unit, true) +
         pad_left(relative ? signed_percent(*c.change_ms / *c.a_ms) : "-", kColumn) +
         pad_left(interval, kInterval) + "  " + word);
  }

  void head(const char* first, const Unit& unit) {
    line("  " + pad_right(first, kName - 2) + pad_left("A", kColumn) + pad_left("B", kColumn) +
         pad_left("CHANGE", kColumn) + pad_left("%", kColumn) +
         pad_left("99 % INTERVAL", kInterval) + "  " + (unit.ms > 1 ? "s" : "ms"));
  }

  void phases() {
    const auto& step = d_.change.step;
    const Unit unit = unit_of(std::max(step.a_ms.value_or(0), step.b_ms.value_or(0)));
    head("PHASE", unit);
    for (const engine::PhaseChange& phase : d_.change.phases) {
      const auto& c = phase.change;
      if (std::max(c.a_ms.value_or(0), c.b_ms.value_or(0)) < kShownMs) continue;
      change_line(phase.name, c, unit);
    }
    change_line("step", step, unit);
  }

  void ranks() {
    std::vector<const engine::RankChange*> order;
    double largest = 0;
    for (const engine::RankChange& rank : d_.change.ranks) {
      order.push_back(&rank);
      largest = std::max({largest, rank.own.a_ms.value_or(0), rank.own.b_ms.value_or(0)});
    }
    std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
      return std::fabs(*a->own.change_ms) > std::fabs(*b->own.change_ms);
    });
    const Unit unit = unit_of(largest);
    head("RANK OWN WORK", unit);
    size_t shown = 0;  // what is noise is of interest only as far as it goes
    for (; shown < order.size() && shown < kMostRanks; ++shown) {
      if (shown >= kLeastRanks && !order[shown]->own.real) break;
      change_line(fmt::format("{:>6}", order[shown]->rank), order[shown]->own, unit);
    }
    if (order.size() > shown) line(fmt::format("    ... and {} more", order.size() - shown));
  }

  void pair(const char* label, const std::optional<double>& a, const std::optional<double>& b,
            const std::function<std::string(double)>& format, const char* unit) {
    if (!a && !b) return;
    std::string text = (a ? format(*a) : "-") + " to " + (b ? format(*b) : "-") + unit;
    if (a && b && *a > 0) text += " (" + signed_percent(*b / *a - 1) + ")";
    row(label, text);
  }

  void rest() {
    const auto& warmup = d_.change.warmup;
    if (warmup.a_ms && warmup.b_ms)
      row("warm-up", duration(*warmup.a_ms) + " to " + duration(*warmup.b_ms) +
                         " a step, not in the figures above");
    pair("throughput", d_.a.samples_per_s, d_.b.samples_per_s, rate, " samples/s");
    const auto reading = [&](const char* name, const Summary& s) { return s.resources.at(name); };
    pair("cpu", reading("cpu", d_.a).average, reading("cpu", d_.b).average, engine::number,
         " cores average");
    pair("memory", reading("memory", d_.a).peak, reading("memory", d_.b).peak, engine::bytes,
         " peak");
    side("A", d_.a);
    side("B", d_.b);
  }

  void side(const char* label, const Summary& s) {
    row(label, show(s.name) + ": " + show(s.verdict.code) + "  " + show(s.verdict.title));
  }

  const Difference& d_;
};

}  // namespace

std::string card(const Difference& difference, const CardStyle& style) {
  return DifferenceCard(difference, style).text();
}

}  // namespace stepscope::report
