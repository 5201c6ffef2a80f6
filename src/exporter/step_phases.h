// Where a step's time went, by name: a user's phase that is called like one of ours is added to it, as every view does.
//
// Thread safety: pure.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "model/step_sample.h"

namespace stepscope::exporter {

struct StepPhases {
  std::array<int64_t, kPhaseCount> ns{};
  std::map<std::string, int64_t> user_ns;
};

inline StepPhases phases_of(const StepSample& step) {
  StepPhases out{step.phase_ns, {}};
  for (const auto& [name, ns] : step.user_phase_ns) {
    const auto ours = phase_from_name(name);
    (ours ? out.ns[static_cast<size_t>(*ours)] : out.user_ns[name]) += ns;
  }
  return out;
}

}  // namespace stepscope::exporter
