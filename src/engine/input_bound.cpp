// INPUT_BOUND: the step waits for data. Two costs that want different remedies: the fetches
// (bootstrapped over the steady steps) and the epoch starts, where workers start anew (counted by
// occurrence, never averaged away).
//
//   share = fetch_share + epoch_start_share
//   fetch_share = (input - its part epoch_start) / step
//   epoch_start_share = n x median / total time
//
// Why, and what mending it would save, say the rules of input_cause.h from what was seen inside the
// loader. Where nothing was seen (a user's own phase, a loader that is not torch's) the cause is
// UNKNOWN, the advice general, and predicted_saving = share: input prefetched in time hides behind
// the rest of the step entirely.
#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/claim.h"
#include "engine/input_cause.h"
#include "engine/words.h"

namespace stepscope::engine {
namespace {

constexpr double kMostOfIt = 0.5, kAlsoWorthMending = 0.25;
constexpr double kBusyCores = 0.9;

struct Worst {
  int32_t rank = 0;
  double share = 0;  // of that rank's own step
  double ms = 0;
  bool stands_out = false;  // clearly above the mean of the ranks
};

Worst worst_rank(const Context& context, const Column& fetch) {
  Worst worst;
  double sum = 0;
  for (const Shares::Rank& rank : context.shares.ranks()) {
    const double share =
        rank.mean(fetch) / rank.mean_ns + rank.rare_share(OccurrenceKind::kEpochStart);
    const double ms = share * rank.mean_ns / 1e6;
    sum += ms;
    if (ms >= worst.ms) worst = {rank.history->rank, share, ms, false};
  }
  worst.stands_out = worst.ms > 1.1 * sum / static_cast<double>(context.shares.ranks().size());
  return worst;
}

const NodeHistory* node_of(const Context& context, int32_t wanted) {
  for (const RankHistory& rank : context.run.ranks)
    if (rank.rank == wanted)
      for (const NodeHistory& node : context.run.nodes)
        if (node.node == rank.node) return &node;
  return context.run.nodes.size() == 1 ? &context.run.nodes.front() : nullptr;
}

// Cores that the ranks on the node and their workers keep busy; 0 not known.
double busy_cores(const Context& context, const NodeHistory& node) {
  double busy = 0;
  for (const RankHistory& rank : context.run.ranks) {
    if (rank.node != node.node) continue;
    double sum = 0, count = 0;
    for (const MemorySample& sample : rank.memory) {
      if (!sample.cpu_cores || sample.step < 0) continue;
      sum += *sample.cpu_cores;
      count += 1;
    }
    if (count > 0) busy += sum / count;
  }
  return busy;
}

int64_t ranks_on(const Context& context, const NodeHistory& node) {
  const auto on_it = [&](const RankHistory& rank) { return rank.node == node.node; };
  const auto count = std::count_if(context.run.ranks.begin(), context.run.ranks.end(), on_it);
  return std::max<int64_t>(count, 1);
}

std::string cores_text(const NodeHistory& node, int64_t ranks) {
  const std::string limit =
      node.cores_limit_reason.empty() ? "" : " (" + node.cores_limit_reason + ")";
  return number(node.cores_usable) + (node.cores_usable == 1 ? " core is" : " cores are") +
         " usable" + limit + " for " + plural(ranks, "rank", "ranks") + " on this node";
}

// Case D13: never from os.cpu_count(); from what this job may use, divided by the ranks on the
// node.
Advice workers_advice(const NodeHistory* node, int64_t ranks, double busy, double gain) {
  Advice advice{
      "Load in worker processes: DataLoader(num_workers=2 or more, prefetch_factor=2 or more).",
      gain, "Run again: the share of input falls and samples/s rise.",
      "The workers would share cores that training already keeps busy, or storage is what is "
      "slow."};
  if (node == nullptr || node->cores_usable <= 0) return advice;
  const double cores = node->cores_usable / static_cast<double>(ranks);
  const auto workers = std::max<int64_t>(1, static_cast<int64_t>(std::floor(cores)) - 1);
  const std::string usable = cores_text(*node, ranks);
  if (busy >= kBusyCores * node->cores_usable) {
    advice.text = "Make loading cheaper before adding workers: " + usable + " and " + number(busy) +
                  " are busy.";
    advice.not_if = "The cores are kept busy by something other than loading.";
    return advice;
  }
  advice.text = "Load in up to " + plural(workers, "worker process", "worker processes") +
                " a rank (DataLoader num_workers=" + std::to_string(workers) + "): " + usable + ".";
  if (cores < 2)
    advice.not_if = "Loading computes rather than waits: a worker would take the core that trains.";
  return advice;
}

// Where nothing was seen inside the loader.
void advise(const Context& context, Finding& finding, int32_t worst, double fetch, double epoch) {
  const double total = fetch + epoch;
  const NodeHistory* node = node_of(context, worst);
  if (epoch >= kAlsoWorthMending * total)
    finding.advice.push_back(
        {"Keep the workers from one epoch to the next: DataLoader(persistent_workers=True).", epoch,
         "Run again: the part of input at epoch starts falls. Hash the sample ids of two epochs: "
         "they must differ.",
         "The dataset keeps its epoch in itself (set_epoch on it): the workers' copies would never "
         "hear of it and "
         "every epoch would be the same. Nor with num_workers=0."});
  if (fetch >= kAlsoWorthMending * total) {
    const int64_t ranks = node == nullptr ? 1 : ranks_on(context, *node);
    const double busy = node == nullptr ? 0 : busy_cores(context, *node);
    finding.advice.push_back(workers_advice(node, ranks, busy, fetch));
    finding.advice.push_back(
        {"Make each sample cheaper: decode and resize once and store the result; move random "
         "transforms to whole "
         "batches.",
         std::nullopt,
         "Time dataset[i] alone: samples/s of one worker x workers must exceed the training's.",
         "The time goes into reading, not into computing."});
    finding.advice.push_back(
        {"Read fewer, larger files (shards), or copy the data to a local disk.", std::nullopt,
         "Time reading alone, without decoding, before packing: it must be a large part of the "
         "input time.",
         "Reading is a small part of the input time: packing then gains nothing."});
  }
}

void advise_pinning(const Context& context, Finding& finding) {
  if (!context.host_time_only)
    finding.advice.push_back(
        {"Leave pin_memory off: without an accelerator there is no copy it could speed up.", 0.0,
         "Nothing to check: it has no effect here.", "A later run uses an accelerator."});
  else
    finding.advice.push_back(
        {"Try pin_memory both ways in this loop: it helps some and slows others.", std::nullopt,
         "Compare samples/s of two runs.", "The batch is small."});
}

std::string title(const Context& context, double share, double epoch, const Worst& worst,
                  const std::string& why) {
  const bool mostly_epoch = epoch >= kMostOfIt * share;
  std::string text =
      percent(share) + (mostly_epoch ? " of the time" : " of each step") + " waits for data";
  if (mostly_epoch)
    text += ", " + percent(epoch) + " at epoch starts";
  else if (epoch >= kAlsoWorthMending * share)
    text += ", epoch starts " + percent(epoch);
  if (!why.empty()) text += ": " + why;
  if (context.host_time_only) text += " (host time)";
  if (worst.stands_out) text += "  (rank " + std::to_string(worst.rank) + " worst)";
  return text;
}

void add_worst_rank(Finding& finding, const Worst& worst) {
  finding.rank = worst.rank;
  add_evidence(finding, "worst_rank", worst.rank, "");
  add_evidence(finding, "worst_rank_input_share", worst.share, "share");
  add_evidence(finding, "worst_rank_input_ms", worst.ms, "ms");
}

void add_cores(const Context& context, Finding& finding, const NodeHistory* node) {
  if (node == nullptr || node->cores_usable <= 0) return;
  add_evidence(finding, "cores_usable", node->cores_usable, "cores");
  if (const double busy = busy_cores(context, *node); busy > 0)
    add_evidence(finding, "cores_busy", busy, "cores");
  if (const auto throttled = node->cpu_throttled_share.average())
    add_evidence(finding, "cpu_throttled_share", *throttled, "share");
}

std::optional<double> mean_of(const RankHistory& rank,
                              std::optional<double> MemorySample::* reading) {
  double sum = 0, count = 0;
  for (const MemorySample& sample : rank.memory) {
    if (!(sample.*reading) || sample.step < 0) continue;
    sum += *(sample.*reading);
    count += 1;
  }
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

// D14: until the limit of the group or machine, without page cache.
void add_memory(const RankHistory& rank, const NodeHistory& node, InputCase& input) {
  if (node.memory_limit_bytes && node.memory_bytes.count > 0)
    input.memory_left_bytes =
        static_cast<double>(*node.memory_limit_bytes) - node.memory_bytes.peak;
  int64_t pss = 0;
  for (const MemorySample& sample : rank.memory)
    pss = std::max(pss, sample.worker_pss_bytes.value_or(0));
  if (pss > 0 && input.workers() > 0)
    input.worker_bytes = static_cast<double>(pss) / input.workers();
}

std::optional<InputCause> find_cause(const Context& context, const Worst& worst, double fetch,
                                     double epoch) {
  const LoaderHistory* history = training_loader(context.run, worst.rank);
  const Shares::Rank* rank = nullptr;
  for (const Shares::Rank& r : context.shares.ranks())
    if (r.history->rank == worst.rank) rank = &r;
  if (history == nullptr || rank == nullptr) return std::nullopt;
  const LoaderView view(*history);
  InputCase input{.loader = view,
                  .step_ms = rank->mean_ns / 1e6,
                  .fetch_share = fetch,
                  .epoch_share = epoch,
                  .cores_why = ""};
  const RankHistory& r = *rank->history;
  const int64_t steady = r.steps - r.warmup_steps;
  if (r.steady_fetches > 0 && steady > 0)
    input.batches_per_step = static_cast<double>(r.steady_fetches) / static_cast<double>(steady);
  input.train_core_wait_share = mean_of(r, &MemorySample::cpu_wait_share);
  input.train_cores = mean_of(r, &MemorySample::cpu_cores);
  if (const NodeHistory* node = node_of(context, worst.rank)) {
    const int64_t ranks = ranks_on(context, *node);
    input.ranks = static_cast<int32_t>(ranks);
    input.cores = node->cores_usable / static_cast<double>(ranks);
    if (node->cores_usable > 0) input.cores_why = cores_text(*node, ranks);
    input.throttled_share = node->cpu_throttled_share.average();
    add_memory(r, *node, input);
  }
  InputCause cause = input_cause(input);
  const bool epochs_too =
      cause.name != "WORKER_RESTART" && epoch >= kAlsoWorthMending * (fetch + epoch);
  if (InputCase also = input; epochs_too) {
    also.fetch_share = 0;
    if (auto restart = worker_restart(also))
      for (Advice& advice : restart->advice) cause.advice.push_back(std::move(advice));
  }
  return cause;
}

void add_cause(const Context& context, Finding& finding, int32_t rank, InputCause cause) {
  finding.cause = cause.name;
  if (cause.saving > 0) finding.predicted_saving = cause.saving;
  for (Evidence& e : cause.evidence) finding.evidence.push_back(std::move(e));
  finding.advice = std::move(cause.advice);
  const LoaderHistory* loader = training_loader(context.run, rank);
  if (loader != nullptr && loader->batches() == 0)
    finding.not_measured.push_back("inside the workers: none of them had room to record");
}

}  // namespace

void input_bound(const Context& context, Findings& findings) {
  if (!context.enough()) return;
  const Settings& settings = context.settings;
  const Column fetch = without(phase_column({Phase::kInput}), "epoch_start");
  const auto rare = context.shares.rare(OccurrenceKind::kEpochStart);
  const double epoch = rare ? rare->share : 0;
  if (context.shares.share(fetch) + epoch < settings.input_warning) return;
  const Interval fetched = context.shares.interval(fetch);
  const Interval share{std::min(1.0, fetched.estimate + epoch), std::min(1.0, fetched.low + epoch),
                       std::min(1.0, fetched.high + epoch)};
  const auto claim = judge(share, settings.input_warning, settings.input_critical);
  if (!claim) return;

  Finding finding = share_finding(context, "INPUT_BOUND", "input", share, *claim);
  const Worst worst = worst_rank(context, fetch);
  auto cause = find_cause(context, worst, fetched.estimate, epoch);
  finding.title = title(context, share.estimate, epoch, worst, cause ? cause->words : "");
  finding.predicted_saving = share.estimate;
  finding.cause = "UNKNOWN";
  add_evidence(finding, "fetch_share", fetched.estimate, "share");
  add_evidence(finding, "epoch_start_share", epoch, "share");
  if (rare) {
    add_evidence(finding, "epoch_starts", rare->count, "");
    add_evidence(finding, "epoch_start_ms", rare->median_ms, "ms");
  }
  if (context.shares.ranks().size() > 1) add_worst_rank(finding, worst);
  add_cores(context, finding, node_of(context, worst.rank));
  if (context.host_time_only)
    finding.not_measured.push_back("device time: all times are host time");
  const bool explained = cause && !cause->advice.empty();
  if (cause) add_cause(context, finding, worst.rank, std::move(*cause));
  if (!cause)
    finding.not_measured.push_back("where the workers' time goes (read, decode, collate)");
  if (!explained) advise(context, finding, worst.rank, fetched.estimate, epoch);
  advise_pinning(context, finding);
  findings.push_back(std::move(finding));
}

}  // namespace stepscope::engine
