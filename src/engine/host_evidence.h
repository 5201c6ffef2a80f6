// What a slow rank's process and host show and the others' do not: waiting for a core or for storage, page faults,
// cores that the hypervisor took, a quota that ran out.
//
//   extra share of the time = (reading of the slow ranks - median of the others) x seconds that one of it costs
//
// A reading is the cause where it is at least 5 % of the time, twice that of the others, and explains half of the
// excess. Pure; looks at a bounded number of the other ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/finding.h"
#include "model/history.h"

namespace stepscope::engine {

// Values of Finding::cause beside the phases' names and those of rank_cause.h.
inline constexpr const char* kContention = "CONTENTION";
inline constexpr const char* kThrottled = "throttled";
inline constexpr const char* kCpuSteal = "cpu_steal";
inline constexpr const char* kDiskWait = "disk_wait";
inline constexpr const char* kPageFaults = "page_faults";

struct HostReading {
  double slow = 0;    // mean of the slow ranks over these steps
  double others = 0;  // median of the other ranks
};

// Of slow ranks (positions) over these steps; none where it was not measured on both sides.
std::optional<HostReading> host_reading(const RunHistory& run, std::span<const int32_t> slow,
                                        std::pair<int64_t, int64_t> steps,
                                        std::optional<double> MemorySample::* reading);

struct HostEvidence {
  std::string cause;  // one of the above; empty: nothing stands out
  std::string words;  // for a title: "waiting for a core"
  std::vector<Evidence> evidence;
  std::vector<std::string> not_measured;
};

// excess_share: of the time, what the slow ranks take longer.
HostEvidence host_evidence(const RunHistory& run, std::span<const int32_t> slow,
                           std::pair<int64_t, int64_t> steps, double excess_share);

}  // namespace stepscope::engine
