// The status: verdict, findings with when, and what every rank does now, those that hold up others first.
#include <fmt/format.h>

#include <algorithm>

#include "engine/words.h"
#include "report/bar.h"
#include "report/page.h"
#include "report/text.h"

namespace stepscope::report {
namespace {

constexpr size_t kMostRanks = 16, kMostEpisodes = 8;

bool is_episode(const Finding& f) { return f.first_step && f.pattern; }

std::string steps_of(const Finding& f) {
  std::string text = fmt::format("step {}", *f.first_step);
  if (!f.ended) return "since " + text;
  return "from " + text + fmt::format(" to {}", f.last_step.value_or(*f.first_step));
}

void episode_rows(Page& page, const Summary& s) {
  size_t shown = 0, all = 0;
  for (const Finding& f : s.findings) {
    if (!is_episode(f) || ++all > kMostEpisodes) continue;
    ++shown;
    std::string text = page.show(f.code) + " " + steps_of(f);
    if (f.cost_ms_per_step) text += ", " + duration(*f.cost_ms_per_step) + " a step";
    page.row(f.ended ? "ended" : "open", text + ": " + page.show(f.title));
  }
  if (all > shown) page.row("", fmt::format("... and {} more", all - shown));
}

// The rank that is furthest behind first, then who does the same for longest.
std::vector<const NowRow*> in_order(const Summary& s) {
  std::vector<const NowRow*> rows;
  for (const NowRow& row : s.now) rows.push_back(&row);
  std::stable_sort(rows.begin(), rows.end(), [&](const NowRow* a, const NowRow* b) {
    const bool named_a = s.verdict.rank == a->rank, named_b = s.verdict.rank == b->rank;
    if (named_a != named_b) return named_a;
    return a->step != b->step ? a->step < b->step : a->since_s > b->since_s;
  });
  return rows;
}

void now_rows(Page& page, const Summary& s) {
  const auto rows = in_order(s);
  if (rows.empty()) return;
  size_t width = 4;
  for (const NowRow* row : rows) width = std::max(width, row->node.size());
  const int node = static_cast<int>(std::min<size_t>(width, 24));
  page.line("");
  page.line("   RANK  " + pad_right("NODE", node) + pad_left("STEP", 10) + "  " +
            pad_right("NOW", 14) + pad_left("FOR", 10));
  for (size_t i = 0; i < rows.size() && i < kMostRanks; ++i) {
    const NowRow& row = *rows[i];
    page.line(pad_left(std::to_string(row.rank), 7) + "  " +
              pad_right(cut(page.show(row.node), node, page.unicode()), node) +
              pad_left(std::to_string(row.step), 10) + "  " +
              pad_right(cut(row.alive ? page.show(row.phase) : "ended", 14, page.unicode()), 14) +
              pad_left(duration(row.since_s * 1e3), 10));
  }
  if (rows.size() > kMostRanks)
    page.line(fmt::format("    ... and {} more", rows.size() - kMostRanks));
}

}  // namespace

std::string status(const Summary& s, const CardStyle& style) {
  Page page(style);
  verdict_rows(page, s);
  page.line("");
  episode_rows(page, s);
  std::string text = engine::plural(s.rank_count, "rank", "ranks");
  text += ", " + engine::plural(s.steps.count, "step", "steps");
  if (s.steps.mean_ms) text += ", " + duration(*s.steps.mean_ms) + " a step";
  if (s.steps_per_s) text += ", " + rate(*s.steps_per_s) + " steps/s";
  text += ", " + time_span(s.duration_s);
  page.row(s.live ? "running" : "ended", text);
  now_rows(page, s);
  return page.take();
}

}  // namespace stepscope::report
