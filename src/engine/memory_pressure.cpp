// MEMORY_PRESSURE: at its fullest moment a node was close to its memory limit, the tightest of the
// cgroups above the job or else the machine's. Page cache does not count: the kernel gives it back.
//
//   share of the limit = peak of what is limited / limit; where that is unknown, the job's own
#include <utility>

#include "engine/claim.h"
#include "engine/words.h"

namespace stepscope::engine {
namespace {

void judge_node(const Context& context, const NodeHistory& node, Findings& findings) {
  if (!node.memory_limit_bytes || *node.memory_limit_bytes <= 0) return;
  const Gauge& used = node.memory_bytes.count > 0 ? node.memory_bytes : node.job_memory_bytes;
  if (used.count == 0) return;
  const auto limit = static_cast<double>(*node.memory_limit_bytes);
  const double full = used.peak / limit;
  if (full < context.settings.memory_pressure_warning) return;
  Finding finding;
  finding.code = "MEMORY_PRESSURE";
  finding.severity =
      full >= context.settings.memory_pressure_critical ? Severity::kCritical : Severity::kWarning;
  finding.scope = Scope::kNode;
  if (!node.node.empty()) finding.node = node.node;
  finding.title = "memory was at " + percent(full) + " of its limit of " + bytes(limit);
  if (context.run.nodes.size() > 1) finding.title += " on " + node.node;
  add_evidence(finding, "memory_share_of_limit", full, "share");
  add_evidence(finding, "memory_peak_bytes", used.peak, "bytes");
  add_evidence(finding, "memory_limit_bytes", limit, "bytes");
  if (node.job_memory_bytes.count > 0)
    add_evidence(finding, "job_memory_peak_bytes", node.job_memory_bytes.peak, "bytes");
  else
    finding.not_measured.push_back("how much of it is this job's");
  finding.advice = {{"Use fewer DataLoader workers or a smaller prefetch_factor, or hold the "
                     "samples in NumPy arrays.",
                     std::nullopt, "The peak of memory falls.",
                     "The job's own part of the memory is small: something else fills this node."},
                    {"Raise the memory limit of the job.", std::nullopt,
                     "The limit in this finding is the new one.", "The limit is the machine's."}};
  findings.push_back(std::move(finding));
}

}  // namespace

void memory_pressure(const Context& context, Findings& findings) {
  for (const NodeHistory& node : context.run.nodes) judge_node(context, node, findings);
}

}  // namespace stepscope::engine
