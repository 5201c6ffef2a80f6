#include "engine/engine.h"

#include <array>

#include "engine/measured.h"
#include "engine/rules.h"
#include "engine/shares.h"
#include "engine/slow_ranks.h"
#include "engine/verdict.h"

namespace stepscope::engine {
namespace {

// compute_bound, insufficient_data and no_bottleneck look at what the rules before them found.
constexpr std::array<Rule, 21> kRules = {
    stuck,           straggler,        waiting,        slowed_down,       memory_creep,
    memory_pressure, memory_imbalance, input_bound,    h2d_bound,         sync_bound,
    optimizer_bound, overhead,         compute_bound,  insufficient_data, no_bottleneck,
    memory_killed,   shm_pressure,     files_pressure, same_data_order,   repeated_samples,
    forked_handles,
};

}  // namespace

std::vector<Finding> diagnose(const RunHistory& run) {
  const std::set<int32_t> slow = slow_ranks(run);
  const Shares shares(run, slow);
  const Context context{run, run.settings, shares, slow, host_time_only(run)};
  Findings findings;
  for (const Rule rule : kRules) rule(context, findings);
  order_findings(findings);
  return findings;
}

}  // namespace stepscope::engine
