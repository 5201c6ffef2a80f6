// SHM_PRESSURE: /dev/shm is nearly full, or would be when the workers have loaded as far ahead as
// they may; then one of them dies of a bus error (D07).
//
//   need = tensors of a batch x (workers x prefetch_factor + 1)     of all loaders of a node
//
// Thread safety: pure.
#include <algorithm>
#include <utility>

#include "engine/claim.h"
#include "engine/loader_view.h"
#include "engine/words.h"

namespace stepscope::engine {
namespace {

struct Need {
  double bytes = 0;  // of all
  double batch = 0;  // of the loader that needs most
  const LoaderHistory* loader = nullptr;
};

Need need_on(const RunHistory& run, const NodeHistory& node) {
  Need need;
  double most = 0;
  for (const LoaderHistory& loader : run.loaders) {
    const auto rank = std::find_if(run.ranks.begin(), run.ranks.end(),
                                   [&](const RankHistory& r) { return r.rank == loader.rank; });
    if (loader.workers == 0 || rank == run.ranks.end() || rank->node != node.node) continue;
    const double batch = LoaderView(loader).shared_bytes_per_batch;
    const double ahead = loader.workers * std::max(1, loader.prefetch_factor) + 1;
    need.bytes += batch * ahead;
    if (batch * ahead <= most) continue;
    most = batch * ahead;
    need.batch = batch;
    need.loader = &loader;
  }
  return need;
}

void judge_node(const Context& context, const NodeHistory& node, Findings& findings) {
  if (node.shm_size_bytes.count == 0 || node.shm_size_bytes.peak <= 0) return;
  const double size = node.shm_size_bytes.peak, used = node.shm_used_bytes.peak;
  const Need need = need_on(context.run, node);
  const double full = used / size, foreseen = need.bytes / size;
  const double worst = std::max(full, foreseen);
  if (worst < context.settings.memory_pressure_warning) return;
  Finding finding;
  finding.code = "SHM_PRESSURE";
  finding.severity =
      full >= context.settings.memory_pressure_critical ? Severity::kCritical : Severity::kWarning;
  finding.scope = Scope::kNode;
  if (!node.node.empty()) finding.node = node.node;
  finding.title = full >= foreseen ? "/dev/shm was at " + percent(full) + " of its " + bytes(size)
                                   : "batches loaded ahead can take " + bytes(need.bytes) +
                                         " of /dev/shm, which has " + bytes(size);
  if (context.run.nodes.size() > 1) finding.title += " on " + node.node;
  add_evidence(finding, "shm_used_share", full, "share");
  add_evidence(finding, "shm_size_bytes", size, "bytes");
  if (need.loader != nullptr) {
    add_evidence(finding, "shm_need_bytes", need.bytes, "bytes");
    add_evidence(finding, "batch_bytes", need.batch, "bytes");
    add_evidence(finding, "workers", need.loader->workers, "");
    add_evidence(finding, "prefetch_factor", need.loader->prefetch_factor, "");
    finding.advice.push_back(
        {"Use fewer workers or a smaller prefetch_factor: a rank's loader holds " +
             bytes(need.batch) + " x (" + std::to_string(need.loader->workers) + " workers x " +
             std::to_string(need.loader->prefetch_factor) + " + 1) in /dev/shm.",
         std::nullopt, "shm_used_share falls.", "Something else fills /dev/shm."});
  } else {
    finding.not_measured.push_back("what of it DataLoader workers hold");
  }
  finding.advice.push_back(
      {"Give the container a larger /dev/shm (docker run --shm-size or "
       "--ipc=host; in Kubernetes an emptyDir with medium: Memory).",
       std::nullopt, "shm_size_bytes is larger.",
       "The memory limit of the job is what is reached first."});
  findings.push_back(std::move(finding));
}

}  // namespace

void shm_pressure(const Context& context, Findings& findings) {
  for (const NodeHistory& node : context.run.nodes) judge_node(context, node, findings);
}

}  // namespace stepscope::engine
