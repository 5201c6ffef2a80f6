// MEMORY_IMBALANCE: one rank holds far more than the others. On a device that rank sets the batch
// size for all (warning); in host memory it only costs memory (info). Medians over the samples
// after the warm-up; the excess must be memory_imbalance of the median of the other ranks, and
// memory_creep_bytes.
#include <algorithm>
#include <utility>

#include "engine/claim.h"
#include "engine/median.h"
#include "engine/words.h"

namespace stepscope::engine {
namespace {

struct Holding {
  const RankHistory* rank = nullptr;
  double bytes = 0;
};

// Empty unless every rank was measured: a missing rank is not an empty one.
std::vector<Holding> holdings(const RunHistory& run, std::optional<int64_t> MemorySample::* bytes) {
  std::vector<Holding> out;
  for (const RankHistory& rank : run.ranks) {
    std::vector<double> values;
    for (const MemorySample& sample : rank.memory)
      if (sample.*bytes && sample.step >= rank.warmup_steps)
        values.push_back(static_cast<double>(*(sample.*bytes)));
    if (values.empty()) return {};
    out.push_back({&rank, median(std::move(values))});
  }
  return out;
}

void judge_kind(const Context& context, std::vector<Holding> held, bool device,
                Findings& findings) {
  if (held.size() < 2) return;
  const auto most =
      std::max_element(held.begin(), held.end(),
                       [](const Holding& a, const Holding& b) { return a.bytes < b.bytes; });
  std::vector<double> others;
  for (const Holding& one : held)
    if (one.rank != most->rank) others.push_back(one.bytes);
  const double usual = median(std::move(others));
  const double excess = most->bytes - usual;
  if (excess < static_cast<double>(context.settings.memory_creep_bytes) ||
      excess < context.settings.memory_imbalance * usual)
    return;
  const auto rank = most->rank;
  Finding finding;
  finding.code = "MEMORY_IMBALANCE";
  finding.severity = device ? Severity::kWarning : Severity::kInfo;
  finding.scope = device ? Scope::kDevice : Scope::kRank;
  finding.rank = rank->rank;
  if (!rank->node.empty()) finding.node = rank->node;
  finding.title = "rank " + std::to_string(rank->rank) + " holds " + bytes(most->bytes) + " of " +
                  (device ? "device" : "host") + " memory, the other ranks " + bytes(usual);
  add_evidence(finding, "rank_bytes", most->bytes, "bytes");
  add_evidence(finding, "others_median_bytes", usual, "bytes");
  add_evidence(finding, "ranks", static_cast<double>(held.size()), "ranks");
  finding.advice = {
      {"Find what only that rank does: gathers, logging, validation, a checkpoint kept in memory.",
       std::nullopt, "The ranks' memory is within 20 % of each other.",
       "The rank is a stage of its own, or its shard of the data is meant to be larger."}};
  findings.push_back(std::move(finding));
}

}  // namespace

void memory_imbalance(const Context& context, Findings& findings) {
  judge_kind(context, holdings(context.run, &MemorySample::device_allocated_bytes), true, findings);
  judge_kind(context, holdings(context.run, &MemorySample::anon_bytes), false, findings);
}

}  // namespace stepscope::engine
