// FILES_PRESSURE: a process of the run has nearly as many files open as it may; the next one fails
// with "Too many open files" (D08). Tensors that workers hand over are open files too.
#include <utility>

#include "engine/claim.h"
#include "engine/words.h"

namespace stepscope::engine {
namespace {

constexpr double kWarning = 0.80, kCritical = 0.95;

}  // namespace

void files_pressure(const Context& context, Findings& findings) {
  for (const NodeHistory& node : context.run.nodes) {
    const double share = node.open_files_share.count > 0 ? node.open_files_share.peak : 0;
    if (share < kWarning) continue;
    Finding finding;
    finding.code = "FILES_PRESSURE";
    finding.severity = share >= kCritical ? Severity::kCritical : Severity::kWarning;
    finding.scope = Scope::kNode;
    if (!node.node.empty()) finding.node = node.node;
    finding.title = "a process had " + percent(share) + " of the files open that it may open";
    if (context.run.nodes.size() > 1) finding.title += " on " + node.node;
    add_evidence(finding, "open_files_share", share, "share");
    finding.advice = {
        {"Raise the limit before training: ulimit -n 65536 (its hard limit: ulimit -Hn).",
         std::nullopt, "open_files_share falls.", "The number of open files grows without end."},
        {"Hand tensors over without keeping a file open for each: "
         "torch.multiprocessing.set_sharing_strategy(\"file_system\").",
         std::nullopt, "open_files_share falls.",
         "The files are the dataset's own: close each after it was read."}};
    findings.push_back(std::move(finding));
  }
}

}  // namespace stepscope::engine
