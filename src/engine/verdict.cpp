#include "engine/verdict.h"

#include <algorithm>
#include <string_view>
#include <tuple>

namespace stepscope::engine {
namespace {

enum Tier {
  kStuck,
  kCriticalMemory,
  kBySaving,
  kSlowedDown,
  kComputeBound,
  kInfo,
  kNoBottleneck,
  kInsufficient
};

Tier tier(const Finding& finding) {
  const std::string_view code = finding.code;
  if (code == "STUCK") return kStuck;
  if (code == "NO_BOTTLENECK") return kNoBottleneck;
  if (code == "INSUFFICIENT_DATA") return kInsufficient;
  if (code == "COMPUTE_BOUND") return kComputeBound;
  if (code == "SLOWED_DOWN") return kSlowedDown;
  if (finding.severity == Severity::kInfo) return kInfo;
  if (finding.severity == Severity::kCritical && code.starts_with("MEMORY_"))
    return kCriticalMemory;
  return kBySaving;
}

// Findings of an episode: the saving over the run, however large it was while it lasted.
double saving(const Finding& finding) {
  for (const Evidence& evidence : finding.evidence)
    if (evidence.name == "run_gain") return evidence.value;
  return finding.predicted_saving.value_or(0);
}

// Smaller is earlier. Equal savings: the worse first, then what is certain.
auto place(const Finding& finding) {
  return std::tuple(tier(finding), -saving(finding), -static_cast<int>(finding.severity),
                    finding.confidence != "certain");
}

}  // namespace

void order_findings(std::vector<Finding>& findings) {
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return place(a) < place(b); });
}

}  // namespace stepscope::engine
