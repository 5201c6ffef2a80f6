#include "engine/verdict.h"

#include <gtest/gtest.h>

namespace stepscope::engine {
namespace {

Finding make(const char* code, Severity severity, double saving = 0,
             const char* confidence = "certain") {
  Finding finding;
  finding.code = code;
  finding.severity = severity;
  finding.confidence = confidence;
  if (saving > 0) finding.predicted_saving = saving;
  return finding;
}

std::vector<std::string> order(std::vector<Finding> findings) {
  order_findings(findings);
  std::vector<std::string> codes;
  for (const Finding& finding : findings) codes.push_back(finding.code);
  return codes;
}

TEST(Verdict, TiersOfTheDiagnosis) {
  EXPECT_EQ(
      order({make("INSUFFICIENT_DATA", Severity::kInfo), make("NO_BOTTLENECK", Severity::kInfo),
             make("JITTER", Severity::kInfo), make("COMPUTE_BOUND", Severity::kInfo),
             make("SLOWED_DOWN", Severity::kCritical, 0.9),
             make("MEMORY_CREEP", Severity::kWarning), make("OVERHEAD", Severity::kWarning, 0.15),
             make("INPUT_BOUND", Severity::kCritical, 0.3),
             make("MEMORY_PRESSURE", Severity::kCritical), make("STUCK", Severity::kCritical)}),
      (std::vector<std::string>{"STUCK", "MEMORY_PRESSURE", "INPUT_BOUND", "OVERHEAD",
                                "MEMORY_CREEP", "SLOWED_DOWN", "COMPUTE_BOUND", "JITTER",
                                "NO_BOTTLENECK", "INSUFFICIENT_DATA"}));
}

TEST(Verdict, SavingBeatsSeverity) {
  EXPECT_EQ(order({make("OPTIMIZER_BOUND", Severity::kCritical, 0.2),
                   make("INPUT_BOUND", Severity::kWarning, 0.25)}),
            (std::vector<std::string>{"INPUT_BOUND", "OPTIMIZER_BOUND"}));
  EXPECT_EQ(order({make("A", Severity::kWarning, 0.2, "possible"),
                   make("B", Severity::kWarning, 0.2), make("C", Severity::kCritical, 0.2)}),
            (std::vector<std::string>{"C", "B", "A"}));
}

}  // namespace
}  // namespace stepscope::engine
