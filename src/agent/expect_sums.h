// For tests: what holds of all that a fold gives out, whatever was fed to it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "agent/fold.h"

namespace stepscope::agent {

inline void expect_sums(const Folded& out) {
  int64_t last_end_ns = INT64_MIN;
  for (const StepSample& s : out.steps) {
    ASSERT_LE(s.begin_ns, s.end_ns);
    ASSERT_GE(s.begin_ns, last_end_ns);
    last_end_ns = s.end_ns;
    int64_t sum = 0;
    for (int64_t ns : s.phase_ns) {
      ASSERT_GE(ns, 0);
      sum += ns;
    }
    for (const auto& [name, ns] : s.user_phase_ns) {
      ASSERT_GT(ns, 0);
      sum += ns;
    }
    ASSERT_EQ(sum, s.total_ns());
    const StepParts& p = s.parts;
    for (int64_t ns :
         {p.loss_ns, p.epoch_start_ns, p.other_before_forward_ns, p.other_after_backward_ns,
          p.other_after_optimizer_ns, p.other_between_steps_ns, p.recompute_ns})
      ASSERT_GE(ns, 0);
    ASSERT_LE(p.recompute_ns, s[Phase::kBackward]);
    ASSERT_LE(p.loss_ns, s[Phase::kForward]);
    ASSERT_LE(p.epoch_start_ns, s[Phase::kInput]);
    ASSERT_LE(p.other_before_forward_ns + p.other_after_backward_ns + p.other_after_optimizer_ns +
                  p.other_between_steps_ns,
              s[Phase::kOther]);
  }
  for (const Occurrence& o : out.occurrences) ASSERT_LE(o.begin_ns, o.end_ns);
}

}  // namespace stepscope::agent
