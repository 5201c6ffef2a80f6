// Seeded statistics, a tenth of bench/compare.cpp's: faults that must be named, and healthy runs that must not.
#include <gtest/gtest.h>

#include "simulator/trials.h"

namespace stepscope::simulator {
namespace {

TEST(Detection, FaultsAreNamedInNinetyEightOfAHundredRuns) {
  for (const Trial& trial : faults_to_name()) {
    const uint64_t runs = std::string_view(trial.name).starts_with("ramp") ? 30 : 100;
    uint64_t right = 0;
    std::string wrong;
    for (uint64_t seed = 10'001; seed <= 10'000 + runs; ++seed) {
      const Outcome outcome = trial.run(seed);
      right += outcome.right ? 1 : 0;
      if (!outcome.right) wrong += "seed " + std::to_string(seed) + "\n" + outcome.said;
    }
    EXPECT_GE(static_cast<double>(right), 0.98 * static_cast<double>(runs) - 0.5)
        << trial.name << "\n"
        << wrong;
  }
}

TEST(Detection, AHealthyRunAccusesNoOne) {
  uint64_t accused = 0;
  std::string wrong;
  for (uint64_t seed = 20'001; seed <= 20'100; ++seed) {
    const Outcome outcome = healthy(seed, 7);
    accused += outcome.right ? 0 : 1;
    if (!outcome.right) wrong += "seed " + std::to_string(seed) + " " + outcome.said;
  }
  EXPECT_EQ(accused, 0) << wrong;
}

}  // namespace
}  // namespace stepscope::simulator
