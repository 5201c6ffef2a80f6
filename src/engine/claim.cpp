#include "engine/claim.h"

#include <algorithm>
#include <utility>

namespace stepscope::engine {

std::optional<Claim> judge(const Interval& share, double warning, double critical) {
  if (share.estimate < warning) return std::nullopt;
  if (share.low < warning) return Claim{Severity::kWarning, false};
  return Claim{share.low >= std::max(warning, critical) ? Severity::kCritical : Severity::kWarning,
               true};
}

std::optional<Judged> judge_column(const Context& context, const Column& column, double warning,
                                   double critical) {
  if (context.shares.share(column) < warning) return std::nullopt;
  const Interval share = context.shares.interval(column);
  const auto claim = judge(share, warning, critical);
  if (!claim) return std::nullopt;
  return Judged{share, *claim};
}

Finding share_finding(const Context& context, std::string_view code, std::string_view what,
                      const Interval& share, const Claim& claim) {
  const Shares& shares = context.shares;
  Finding finding;
  finding.code = code;
  finding.severity = claim.severity;
  finding.confidence = claim.certain ? "certain" : "possible";
  finding.phase = std::string(what);
  finding.share = share.estimate;
  finding.cost_ms_per_step = share.estimate * shares.step_ms();
  finding.first_step = shares.first_step();
  finding.last_step = shares.last_step();
  add_evidence(finding, std::string(what) + "_share", share.estimate, "share");
  add_evidence(finding, "share_low", share.low, "share");
  add_evidence(finding, "share_high", share.high, "share");
  add_evidence(finding, std::string(what) + "_ms", *finding.cost_ms_per_step, "ms");
  add_evidence(finding, "steady_steps", static_cast<double>(shares.steady_steps()), "steps");
  add_evidence(finding, "ranks", static_cast<double>(shares.ranks().size()), "ranks");
  return finding;
}

void add_evidence(Finding& finding, std::string name, double value, std::string unit) {
  finding.evidence.push_back({std::move(name), value, std::move(unit)});
}

}  // namespace stepscope::engine
