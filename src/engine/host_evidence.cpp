#include "engine/host_evidence.h"

#include <algorithm>
#include <array>
#include <set>

#include "engine/median.h"

namespace stepscope::engine {
namespace {

constexpr size_t kMostOthers = 64, kMostSlow = 16;
constexpr double kLeastShare = 0.05, kTimesOthers = 2, kExplains = 0.5;
// A fault filled from memory takes half a microsecond to a few; one from storage a tenth of a millisecond on a good SSD.
constexpr double kMinorFaultS = 1.5e-6, kMajorFaultS = 1e-4;

struct Kind {
  const char* cause;
  const char* words;
  const char* name;  // of the evidence
  const char* unit;
  const char* missing;
  std::optional<double> MemorySample::* reading;
  double seconds;  // that one of it costs
  bool always;     // shown where it is not the cause too
};

// The first that stands out is the cause.
constexpr std::array kKinds = {
    Kind{kContention, "waiting for a core", "cpu_wait_share", "share", "waiting for a core",
         &MemorySample::cpu_wait_share, 1, true},
    Kind{kCpuSteal, "the hypervisor takes its cores", "cpu_steal_share", "share", "CPU steal",
         &MemorySample::cpu_steal_share, 1, false},
    Kind{kDiskWait, "waiting for storage", "disk_wait_share", "share",
         "disk wait (the kernel counts it after: sysctl kernel.task_delayacct=1)",
         &MemorySample::disk_wait_share, 1, false},
    Kind{kPageFaults, "page faults read from storage", "major_faults_per_s", "1/s", "page faults",
         &MemorySample::major_faults_per_s, kMajorFaultS, false},
    Kind{kPageFaults, "page faults", "minor_faults_per_s", "1/s", nullptr,
         &MemorySample::minor_faults_per_s, kMinorFaultS, false}};

std::optional<double> mean_of(const RankHistory& rank, std::pair<int64_t, int64_t> steps,
                              std::optional<double> MemorySample::* reading) {
  double sum = 0, count = 0;
  for (const MemorySample& sample : rank.memory) {
    if (!(sample.*reading) || sample.step < steps.first || sample.step > steps.second) continue;
    sum += *(sample.*reading);
    count += 1;
  }
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

bool stands_out(double slow, double others, double excess_share) {
  return slow >= kLeastShare && slow >= kTimesOthers * others &&
         slow - others >= kExplains * excess_share;
}

// A quota is the node's: it tells something only where other nodes have ranks that are not slow.
bool is_throttled(const RunHistory& run, std::span<const int32_t> slow) {
  std::set<std::string> theirs;
  for (const int32_t at : slow) theirs.insert(run.ranks[static_cast<size_t>(at)].node);
  double share = 0;
  std::vector<double> others;
  for (const NodeHistory& node : run.nodes) {
    const double average = node.cpu_throttled_share.average().value_or(0);
    if (theirs.contains(node.node))
      share = std::max(share, average);
    else
      others.push_back(average);
  }
  return !others.empty() && stands_out(share, median(std::move(others)), 0);
}

}  // namespace

std::optional<HostReading> host_reading(const RunHistory& run, std::span<const int32_t> slow,
                                        std::pair<int64_t, int64_t> steps,
                                        std::optional<double> MemorySample::* reading) {
  HostReading out;
  double sum = 0, count = 0;
  for (size_t i = 0; i < std::min(slow.size(), kMostSlow); ++i)
    if (const auto mean = mean_of(run.ranks[static_cast<size_t>(slow[i])], steps, reading)) {
      sum += *mean;
      count += 1;
    }
  if (count == 0) return std::nullopt;
  out.slow = sum / count;
  std::vector<double> others;
  const size_t stride = run.ranks.size() / kMostOthers + 1;
  for (size_t r = 0; r < run.ranks.size(); r += stride) {
    if (std::find(slow.begin(), slow.end(), static_cast<int32_t>(r)) != slow.end()) continue;
    if (const auto mean = mean_of(run.ranks[r], steps, reading)) others.push_back(*mean);
  }
  if (others.empty()) return std::nullopt;
  out.others = median(std::move(others));
  return out;
}

HostEvidence host_evidence(const RunHistory& run, std::span<const int32_t> slow,
                           std::pair<int64_t, int64_t> steps, double excess_share) {
  HostEvidence out;
  for (const Kind& kind : kKinds) {
    const auto reading = host_reading(run, slow, steps, kind.reading);
    if (!reading) {
      if (kind.missing != nullptr) out.not_measured.emplace_back(kind.missing);
      continue;
    }
    const bool is_cause =
        out.cause.empty() &&
        stands_out(reading->slow * kind.seconds, reading->others * kind.seconds, excess_share);
    if (is_cause) {
      out.cause = kind.cause;
      out.words = kind.words;
    }
    if (!is_cause && !kind.always) continue;
    out.evidence.push_back({kind.name, reading->slow, kind.unit});
    out.evidence.push_back({std::string("others_") + kind.name, reading->others, kind.unit});
  }
  if (out.cause == kContention && is_throttled(run, slow)) {
    out.cause = kThrottled;
    out.words = "its CPU quota runs out";
  }
  return out;
}

}  // namespace stepscope::engine
