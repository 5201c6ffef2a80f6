// MEMORY_CREEP: memory grows with the number of steps. Process (anonymous), workers (PSS) and
// device (allocated) apart.
//
// Per rank and kind, over the samples after the warm-up: the Theil-Sen slope with its 95 % interval
// above 0, over all and also over the last half; the growth, taken with the smaller of the two
// slopes so that a cache that filled early is no creep, is at least memory_creep_share of the start
// and memory_creep_bytes, or memory_creep_any_bytes, and twice the spread about the line: what goes
// up and down by as much needs more steps to be told from a wave. Critical: at this rate the limit
// is reached within as many steps as were already seen.
#include <algorithm>
#include <array>
#include <utility>

#include "engine/claim.h"
#include "engine/theil_sen.h"
#include "engine/words.h"

namespace stepscope::engine {
namespace {

constexpr size_t kMinSamples = 10;

struct Kind {
  const char* name;
  const char* words;
  std::optional<int64_t> MemorySample::* bytes;
  Scope scope;
};
constexpr std::array kKinds = {
    Kind{"process", "memory of the training process", &MemorySample::anon_bytes, Scope::kRank},
    Kind{"workers", "memory of the DataLoader workers", &MemorySample::worker_pss_bytes,
         Scope::kWorker},
    Kind{"device", "memory allocated on the device", &MemorySample::device_allocated_bytes,
         Scope::kDevice},
};

struct Creep {
  const RankHistory* rank = nullptr;
  double first_step = 0, last_step = 0;
  double start = 0, end = 0;  // bytes on the line
  double slope = 0;           // bytes a step, the smaller of all and last half
  double slope_low = 0, slope_high = 0;
  double growth() const { return slope * (last_step - first_step); }
};

bool is_notable(double growth, const Line& line, double first_step, const Settings& settings) {
  if (growth < 2 * line.spread) return false;
  if (growth >= static_cast<double>(settings.memory_creep_any_bytes)) return true;
  return growth >= static_cast<double>(settings.memory_creep_bytes) &&
         growth >= settings.memory_creep_share * line.at(first_step);
}

std::optional<Creep> creep_of(const RankHistory& rank, const Kind& kind, const Settings& settings) {
  std::vector<Point> points;
  for (const MemorySample& sample : rank.memory)
    if (const auto& value = sample.*kind.bytes; value && sample.step >= rank.warmup_steps)
      points.push_back({static_cast<double>(sample.step), static_cast<double>(*value)});
  if (points.size() < kMinSamples) return std::nullopt;
  const double first = points.front().x, last = points.back().x;
  if (last - first < static_cast<double>(settings.memory_min_steps)) return std::nullopt;
  const auto whole = theil_sen(points);
  if (!whole || whole->slope_low <= 0 ||
      !is_notable(whole->slope * (last - first), *whole, first, settings))
    return std::nullopt;
  const auto middle = std::find_if(points.begin(), points.end(),
                                   [&](const Point& p) { return p.x >= (first + last) / 2; });
  const auto later = theil_sen({middle, points.end()});
  if (!later || later->slope_low <= 0) return std::nullopt;
  const double slope = std::min(whole->slope, later->slope);
  if (!is_notable(slope * (last - first), *whole, first, settings)) return std::nullopt;
  return Creep{&rank,
               first,
               last,
               whole->at(first),
               later->at(last),
               slope,
               whole->slope_low,
               whole->slope_high};
}

// Bytes that the rank's node still has below its limit, as of its fullest moment.
std::optional<double> headroom(const Context& context, const RankHistory& rank) {
  for (const NodeHistory& node : context.run.nodes) {
    if (node.node != rank.node || !node.memory_limit_bytes) continue;
    const Gauge& used = node.memory_bytes.count > 0 ? node.memory_bytes : node.job_memory_bytes;
    if (used.count == 0) return std::nullopt;
    return std::max(0.0, static_cast<double>(*node.memory_limit_bytes) - used.peak);
  }
  return std::nullopt;
}

std::vector<Advice> advice_for(const Kind& kind) {
  if (kind.scope == Scope::kWorker)
    return {
        {"Hold the samples' index in NumPy arrays or one tensor, not in Python lists and dicts.",
         std::nullopt, "The workers' memory stays level over an epoch.",
         "The workers fill a cache on purpose: bound it. Counting references copies the pages that "
         "a fork shares."}};
  return {{"Keep numbers, not graphs: total += loss.item(), or loss.detach(), never loss itself.",
           std::nullopt, "Memory stays level over the next few hundred steps.",
           "Nothing computed with gradients is kept from step to step."},
          {"Look for what is appended to each step: outputs, metrics, hooks that keep tensors.",
           std::nullopt, "len() of each list and dict that outlives a step stays the same.",
           "The growth is a cache that is meant to fill and is bounded."}};
}

void add_limit(const Context& context, Finding& finding, const Kind& kind,
               const std::vector<Creep>& creeps, const Creep& worst) {
  const auto room = kind.scope == Scope::kDevice ? std::nullopt : headroom(context, *worst.rank);
  if (!room) {
    finding.not_measured.push_back(kind.scope == Scope::kDevice ? "the device's memory limit"
                                                                : "the memory limit");
    return;
  }
  double slope = 0;  // all growing ranks of the node draw on the same limit
  for (const Creep& creep : creeps)
    if (creep.rank->node == worst.rank->node) slope += creep.slope;
  const double steps_left = *room / slope;
  add_evidence(finding, "bytes_to_limit", *room, "bytes");
  add_evidence(finding, "limit_at_step", worst.last_step + steps_left, "step");
  finding.title +=
      "; the limit is reached at step " + number(std::min(1e15, worst.last_step + steps_left));
  if (steps_left <= worst.last_step) finding.severity = Severity::kCritical;
}

void judge_kind(const Context& context, const Kind& kind, Findings& findings) {
  std::vector<Creep> creeps;
  for (const RankHistory& rank : context.run.ranks)
    if (auto creep = creep_of(rank, kind, context.settings)) creeps.push_back(*creep);
  if (creeps.empty()) return;
  const Creep& worst =
      *std::max_element(creeps.begin(), creeps.end(),
                        [](const Creep& a, const Creep& b) { return a.growth() < b.growth(); });
  Finding finding;
  finding.code = "MEMORY_CREEP";
  finding.severity = Severity::kWarning;
  const bool all_ranks = creeps.size() == context.run.ranks.size();
  finding.scope = kind.scope == Scope::kRank && all_ranks ? Scope::kJob : kind.scope;
  finding.rank = worst.rank->rank;
  finding.node = worst.rank->node.empty() ? std::nullopt : std::optional(worst.rank->node);
  finding.pattern = "ramp";
  finding.cause = kind.name;
  finding.first_step = static_cast<int64_t>(worst.first_step);
  finding.last_step = static_cast<int64_t>(worst.last_step);
  finding.title = std::string(kind.words) + " grows by " + bytes(worst.slope) + " a step";
  if (context.run.ranks.size() > 1)
    finding.title += " (" + plural(static_cast<int64_t>(creeps.size()), "rank", "ranks") +
                     ", rank " + std::to_string(worst.rank->rank) + " most)";
  add_evidence(finding, "growth_bytes_per_step", worst.slope, "bytes/step");
  add_evidence(finding, "growth_low", worst.slope_low, "bytes/step");
  add_evidence(finding, "growth_high", worst.slope_high, "bytes/step");
  add_evidence(finding, "growth_bytes", worst.growth(), "bytes");
  add_evidence(finding, "start_bytes", worst.start, "bytes");
  add_evidence(finding, "end_bytes", worst.end, "bytes");
  add_evidence(finding, "ranks", static_cast<double>(creeps.size()), "ranks");
  finding.advice = advice_for(kind);
  add_limit(context, finding, kind, creeps, worst);
  findings.push_back(std::move(finding));
}

}  // namespace

void memory_creep(const Context& context, Findings& findings) {
  for (const Kind& kind : kKinds) judge_kind(context, kind, findings);
}

}  // namespace stepscope::engine
