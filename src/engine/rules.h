// The rules: each looks at one run and adds the findings it stands for, or none. engine.cpp lists
// them in the order in which they may look at what the others found.
//
// Thread safety: pure functions. Lifetime: a Context is only valid during diagnose().
#pragma once

#include <set>
#include <vector>

#include "engine/shares.h"
#include "model/finding.h"
#include "model/history.h"

namespace stepscope::engine {

struct Context {
  const RunHistory& run;
  const Settings& settings;
  const Shares& shares;  // of the ranks that are not slow
  // Ranks that findings of their own tell about: what slows only them is not told again of the job.
  const std::set<int32_t>& slow;
  // Parameters are on an accelerator and no device times are recorded: phases are host time, and
  // only step time, input, checkpoint, validation and gc may be judged.
  bool host_time_only = false;

  bool enough() const { return !shares.ranks().empty(); }
};

using Findings = std::vector<Finding>;
using Rule = void (*)(const Context&, Findings&);

void stuck(const Context& context, Findings& findings);
void straggler(const Context& context, Findings& findings);
void waiting(const Context& context, Findings& findings);
void slowed_down(const Context& context, Findings& findings);
void memory_creep(const Context& context, Findings& findings);
void memory_pressure(const Context& context, Findings& findings);
void memory_imbalance(const Context& context, Findings& findings);
void input_bound(const Context& context, Findings& findings);
void h2d_bound(const Context& context, Findings& findings);
void sync_bound(const Context& context, Findings& findings);
void optimizer_bound(const Context& context, Findings& findings);
void overhead(const Context& context, Findings& findings);
// These look at what the rules above them found.
void compute_bound(const Context& context, Findings& findings);
void insufficient_data(const Context& context, Findings& findings);
void no_bottleneck(const Context& context, Findings& findings);
// Of no time: the last.
void memory_killed(const Context& context, Findings& findings);
void shm_pressure(const Context& context, Findings& findings);
void files_pressure(const Context& context, Findings& findings);
void same_data_order(const Context& context, Findings& findings);
void repeated_samples(const Context& context, Findings& findings);
void forked_handles(const Context& context, Findings& findings);

}  // namespace stepscope::engine
