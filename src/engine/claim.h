// From a share and its interval to a claim, and the fields that all findings about a share have
// alike.
//
// A share at the warning threshold is a finding. It is certain only if the lower end of the
// interval is at the threshold too; else it is "possible", and then never critical. Thread safety:
// pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/rules.h"

namespace stepscope::engine {

struct Claim {
  Severity severity = Severity::kWarning;
  bool certain = true;
};

// None: under the warning. Critical needs both thresholds.
std::optional<Claim> judge(const Interval& share, double warning, double critical);

// The claim on a column of the steady steps. Bootstraps only what is at the warning.
struct Judged {
  Interval share;
  Claim claim;
};
std::optional<Judged> judge_column(const Context& context, const Column& column, double warning,
                                   double critical);

// Code, severity, confidence, share, cost_ms_per_step, steps, and evidence: <what>_share,
// share_low, share_high, <what>_ms, steady_steps, ranks. cost_ms_per_step = share x mean step. The
// phase is `what` unless the rule sets another.
Finding share_finding(const Context& context, std::string_view code, std::string_view what,
                      const Interval& share, const Claim& claim);

void add_evidence(Finding& finding, std::string name, double value, std::string unit);

}  // namespace stepscope::engine
