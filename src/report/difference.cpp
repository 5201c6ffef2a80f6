#include "report/difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "engine/engine.h"
#include "engine/words.h"
#include "report/bar.h"
#include "report/page.h"

namespace stepscope::report {
namespace {

constexpr size_t kMostPhases = 3;
constexpr double kAllRanks = 0.9;  // so many of them: then it is everybody

std::string signed_ms(double ms) { return (ms < 0 ? "-" : "+") + duration(std::fabs(ms)); }
std::string signed_percent(double share) {
  return (share < 0 ? "-" : "+") + percent(std::fabs(share));
}

// The phases that really changed, largest first: "forward +5.1 ms, input -2.0 ms".
std::string phases_text(const engine::RunChange& change) {
  std::vector<const engine::PhaseChange*> real;
  for (const engine::PhaseChange& phase : change.phases)
    if (phase.change.real) real.push_back(&phase);
  std::stable_sort(real.begin(), real.end(), [](const auto* a, const auto* b) {
    return std::fabs(*a->change.change_ms) > std::fabs(*b->change.change_ms);
  });
  std::string text;
  for (size_t i = 0; i < real.size() && i < kMostPhases; ++i)
    text += (i == 0 ? "" : ", ") + real[i]->name + " " + signed_ms(*real[i]->change.change_ms);
  return text;
}

std::string title_of(const engine::RunChange& change) {
  if (!change.share) return "no time was measured";
  const std::string a = duration(*change.step.a_ms), b = duration(*change.step.b_ms);
  if (change.direction != engine::Direction::kSame)
    return signed_percent(*change.share) + ", " + a + " to " + b + " a step";
  const std::string both = a + " and " + b + " a step";
  if (!change.low_share) return both + ": too few steps to tell it from noise";
  const std::string phases = phases_text(change);
  if (!phases.empty()) return both + ", but " + phases;
  const bool certain = *change.low_share > 0 || *change.high_share < 0;
  return both + ", " + signed_percent(*change.share) +
         (certain ? " is too little to matter" : " is within noise");
}

// "rank 3 of 8: its own work +15.1 ms, input +15.0 ms", "all ranks: forward +5.1 ms".
std::string from_of(const engine::RunChange& change) {
  const std::string phases = phases_text(change);
  if (change.direction == engine::Direction::kSame || change.ranks.empty()) return phases;
  if (change.from_ranks.empty()) return phases.empty() ? "" : "no rank in particular: " + phases;
  const auto ranks = static_cast<double>(change.ranks.size());
  if (static_cast<double>(change.from_ranks.size()) >= kAllRanks * ranks)
    return (change.from_ranks.size() == change.ranks.size() ? "all ranks" : "nearly all ranks") +
           (phases.empty() ? "" : ": " + phases);
  const engine::RankChange* most = nullptr;
  for (const engine::RankChange& rank : change.ranks)
    if (std::find(change.from_ranks.begin(), change.from_ranks.end(), rank.rank) !=
            change.from_ranks.end() &&
        (most == nullptr || std::fabs(*rank.own.change_ms) > std::fabs(*most->own.change_ms)))
      most = &rank;
  std::string text = (change.from_ranks.size() == 1 ? "rank " : "ranks ") +
                     engine::ranges(change.from_ranks) + " of " +
                     std::to_string(change.ranks.size());
  if (most == nullptr || most->phase.empty()) return text;
  text += change.from_ranks.size() == 1 ? ": "
                                        : ", most of all rank " + std::to_string(most->rank) + ": ";
  return text + "its own work " + signed_ms(*most->own.change_ms) + ", " + most->phase + " " +
         signed_ms(most->phase_change_ms);
}

std::optional<Error> refusal(const std::vector<engine::Incomparable>& all, bool anyway) {
  std::string few, work;
  for (const engine::Incomparable& one : all) {
    std::string& text = one.obstacle == engine::Obstacle::kTooFew ? few : work;
    if (one.obstacle != engine::Obstacle::kRemark) text += (text.empty() ? "" : "; ") + one.text;
  }
  if (!few.empty())
    return Error{"A and B cannot be compared: " + few,
                 "let them run longer; the first steps are warm-up and do not count"};
  if (!work.empty() && !anyway)
    return Error{"a step is not the same work in A and B: " + work,
                 "to see the numbers all the same, add --anyway"};
  return std::nullopt;
}

}  // namespace

Result<Difference> difference(const RunHistory& a, const RunHistory& b,
                              const DifferenceOptions& options) {
  std::vector<engine::Incomparable> remarks = engine::incomparable(a, b);
  if (const auto error = refusal(remarks, options.anyway)) return *error;
  Difference d;
  d.remarks = std::move(remarks);
  d.a = summarize(a, engine::diagnose(a));
  d.b = summarize(b, engine::diagnose(b));
  d.change = engine::compare_runs(a, b);
  const engine::RunChange& change = d.change;
  d.code = change.direction == engine::Direction::kSlower   ? "SLOWER"
           : change.direction == engine::Direction::kFaster ? "FASTER"
                                                            : "SAME";
  d.title = title_of(change);
  d.from = from_of(change);
  if (d.a.samples_per_s && d.b.samples_per_s && *d.a.samples_per_s > 0)
    d.samples_per_s_share = *d.b.samples_per_s / *d.a.samples_per_s - 1;
  d.max_slowdown = options.max_slowdown;
  d.exceeded = options.max_slowdown && change.share && *change.share > *options.max_slowdown &&
               change.step.low_ms.value_or(0) > 0;
  return d;
}

}  // namespace stepscope::report
