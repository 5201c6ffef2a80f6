// Why ranks are slow, and what to do: from the phases of the excess and from what their processes show. Pure.
#pragma once

#include <string>
#include <vector>

#include "engine/host_evidence.h"
#include "engine/rules.h"
#include "model/comparison.h"

namespace stepscope::engine {

// Values of Finding::cause beside the phases' names and those of host_evidence.h.
inline constexpr const char* kMoreSamples = "more_samples";
inline constexpr const char* kDeviceOrHost = "device_or_host";

struct RankCause {
  std::string phase;  // the largest excess; empty: none was seen
  std::string
      cause;  // the phase where it holds >= 80 %, the two largest with shares, or one of the above
  std::string words;  // for a title: "input", "waiting for a core, mostly in forward"
  HostEvidence host;
};

// From a list of excesses, largest first.
std::string largest_phase(const std::vector<PhaseExcess>& phases);
std::string phases_in_words(
    const std::vector<PhaseExcess>& phases);  // cause without further evidence

RankCause rank_cause(const RunHistory& run, const Episode& episode);

// Remedies, each only where its evidence is there. who: "rank 3", "node n1".
std::vector<Advice> rank_advice(const RankCause& cause, const std::string& who, Scope scope,
                                double gain);
void add_phase_evidence(Finding& finding, const std::vector<PhaseExcess>& phases, double steps);

}  // namespace stepscope::engine
