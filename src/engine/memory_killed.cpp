// MEMORY_KILLED: the kernel ended processes of the run's memory group because none was left. Its own
// count is the evidence: a process that ended with SIGKILL alone may have been killed by anybody.
#include <utility>

#include "engine/claim.h"
#include "engine/words.h"

namespace stepscope::engine {

void memory_killed(const Context& context, Findings& findings) {
  for (const NodeHistory& node : context.run.nodes) {
    if (node.memory_kills.peak < 1) continue;
    Finding finding;
    finding.code = "MEMORY_KILLED";
    finding.severity = Severity::kCritical;
    finding.scope = Scope::kNode;
    if (!node.node.empty()) finding.node = node.node;
    const auto killed = static_cast<int64_t>(node.memory_kills.peak);
    finding.title =
        "the kernel ended " + plural(killed, "process", "processes") + " for lack of memory";
    if (context.run.nodes.size() > 1) finding.title += " on " + node.node;
    add_evidence(finding, "memory_kills", node.memory_kills.peak, "processes");
    if (node.memory_limit_bytes)
      add_evidence(finding, "memory_limit_bytes", static_cast<double>(*node.memory_limit_bytes),
                   "bytes");
    if (node.memory_bytes.count > 0)
      add_evidence(finding, "memory_peak_bytes", node.memory_bytes.peak, "bytes");
    finding.advice = {
        {"Use fewer DataLoader workers, a smaller prefetch_factor or a smaller batch; each worker "
         "holds a copy of what it touches of the dataset.",
         std::nullopt, "The count stays 0.",
         "Another job of the same group or machine used the memory up."},
        {"Raise the memory limit of the job.", std::nullopt, "The count stays 0.",
         "Memory grows without end: see MEMORY_CREEP."}};
    findings.push_back(std::move(finding));
  }
}

}  // namespace stepscope::engine
