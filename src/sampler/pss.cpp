// Proportional shares of the run's processes: rounds over them, paid from a credit of CPU time.
#include <algorithm>
#include <set>

#include "base/clock.h"
#include "sampler/proc.h"
#include "sampler/sampler.h"

namespace stepscope::sampler {
namespace {

constexpr int kJobEvery = 4;  // rounds: a rank's own share costs as much as a worker's

}  // namespace

// Every worker, and in some rounds the ranks that have workers.
bool Sampler::begin_pss(const std::vector<Member>& members, int64_t now_ns) {
  if (credited_ns_ != INT64_MIN)
    pss_credit_ns_ = std::min(kPssCreditNs, pss_credit_ns_ + (now_ns - credited_ns_) / kPssShare);
  credited_ns_ = now_ns;
  if (pss_credit_ns_ <= 0 || now_ns < next_pss_ns_) return false;
  std::set<int32_t> with_workers;
  for (const Member& member : members)
    if (member.worker) with_workers.insert(member.rank);
  if (with_workers.empty()) return false;
  pss_ = {};
  pss_.running = true;
  pss_.with_ranks = rounds_++ % kJobEvery == 0;
  for (const Member& member : members)
    if (member.worker || (pss_.with_ranks && with_workers.contains(member.rank)))
      pss_.todo.push_back(member);
  return true;
}

// Goes on with the round; true when it is complete.
bool Sampler::spend_on_pss() {
  const int64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  int64_t spent = 0;
  while (!pss_.todo.empty() && (spent == 0 || spent < pss_budget_ns_)) {
    const Member member = pss_.todo.back();
    pss_.todo.pop_back();
    const auto text = read_file(pid_file(root_, member.pid, "smaps_rollup"), kStatBytes);
    spent = std::max<int64_t>(1, clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin);
    const auto pss_kb = text ? value_of(*text, "Pss") : std::nullopt;
    if (!pss_kb) {
      if (!lives(root_, member.pid)) continue;
      pss_.failed = true;
      pss_.reason = text ? pid_file(root_, member.pid, "smaps_rollup") + ": no Pss in it"
                         : text.error().message;
      continue;
    }
    const int64_t bytes = (*pss_kb - value_of(*text, "Pss_File").value_or(0)) * 1024;
    pss_.job_bytes += bytes;
    if (member.worker) pss_.worker_bytes[member.rank] += bytes;
  }
  pss_credit_ns_ -= spent;
  return pss_.todo.empty();
}

void Sampler::read_pss(const std::vector<Member>& members, int64_t now_ns,
                       std::map<int32_t, MemorySample>& out, NodeHistory& node) {
  Gauge& job = node.job_memory_bytes;
  if (members.empty() && job.count == 0) job.not_measured = kNoProcess;
  std::set<int32_t> alone;
  for (const auto& [rank, sample] : out) alone.insert(rank);
  for (const Member& member : members)
    if (member.worker) alone.erase(member.rank);
  int64_t alone_bytes = 0;
  bool known = true;
  for (const int32_t rank : alone) {
    known = known && out[rank].anon_bytes;
    alone_bytes += out[rank].anon_bytes.value_or(0);
  }
  if (!members.empty() && alone.size() == out.size()) {  // no worker anywhere
    pss_.running = false;
    if (known) job.add(static_cast<double>(alone_bytes));
    if (!known && job.count == 0) job.not_measured = "/proc/<pid>/statm is not readable";
    return;
  }
  if (!pss_.running && !begin_pss(members, now_ns)) return;
  if (!spend_on_pss()) return;
  pss_.running = false;
  next_pss_ns_ = now_ns + kPssIntervalNs;
  if (pss_.failed) {
    if (job.count == 0) job.not_measured = pss_.reason;
    return;
  }
  if (pss_.with_ranks && known) job.add(static_cast<double>(pss_.job_bytes + alone_bytes));
  for (const auto& [rank, bytes] : pss_.worker_bytes)
    if (const auto sample = out.find(rank); sample != out.end())
      sample->second.worker_pss_bytes = bytes;
}

}  // namespace stepscope::sampler
