// SAME_DATA_ORDER: a DistributedSampler that shuffles gave two whole epochs in one order, because
// set_epoch was not called. It costs no time, but the model sees its data in the same batches again.
#include <utility>

#include "engine/rules.h"
#include "model/facts.h"

namespace stepscope::engine {

void same_data_order(const Context& context, Findings& findings) {
  const RankHistory* first = nullptr;
  for (const RankHistory& rank : context.run.ranks)
    if (first == nullptr && (rank.facts & kFactSameOrder) != 0) first = &rank;
  if (first == nullptr) return;
  Finding finding;
  finding.code = "SAME_DATA_ORDER";
  finding.severity = Severity::kWarning;
  finding.phase = "input";
  finding.title = "each epoch goes through the data in the same order";
  finding.evidence.push_back({"first_rank", static_cast<double>(first->rank), ""});
  finding.advice.push_back(
      {"Call sampler.set_epoch(epoch) before each epoch: without it the DistributedSampler "
       "shuffles "
       "every epoch alike.",
       std::nullopt, "This finding is gone in a run of two epochs.",
       "The same order in every epoch is what you want: then shuffle=False says so."});
  findings.push_back(std::move(finding));
}

}  // namespace stepscope::engine
