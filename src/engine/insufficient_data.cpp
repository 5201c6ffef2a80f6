// INSUFFICIENT_DATA: too few steady steps, or a signal that a rule needs was not measured. One
// finding that names each; it is the verdict only when nothing else can be said. Missing is not
// zero (case M09).
#include <algorithm>
#include <utility>

#include "engine/claim.h"
#include "engine/measured.h"
#include "engine/sync_transfer.h"
#include "engine/words.h"

namespace stepscope::engine {
namespace {

class Gaps {
 public:
  // `what` and `why` become the sentence "what: why".
  void add(std::string sentence) { sentences_.push_back(std::move(sentence)); }
  void add(std::string sentence, Advice advice) {
    sentences_.push_back(std::move(sentence));
    advice_.push_back(std::move(advice));
  }
  void evidence(std::string name, double value, std::string unit) {
    evidence_.push_back({std::move(name), value, std::move(unit)});
  }

  void finish(Findings& findings) {
    if (sentences_.empty()) return;
    Finding finding;
    finding.code = "INSUFFICIENT_DATA";
    finding.title = sentences_.front();
    if (sentences_.size() > 1)
      finding.title +=
          " (and " + plural(static_cast<int64_t>(sentences_.size()) - 1, "more gap)", "more gaps)");
    finding.not_measured = std::move(sentences_);
    finding.advice = std::move(advice_);
    finding.evidence = std::move(evidence_);
    findings.push_back(std::move(finding));
  }

 private:
  std::vector<std::string> sentences_;
  std::vector<Advice> advice_;
  std::vector<Evidence> evidence_;
};

bool find_too_few_steps(const Context& context, Gaps& gaps) {
  if (context.enough()) return false;
  int64_t steps = 0, failed = 0, profiled = 0;
  for (const RankHistory& rank : context.run.ranks) {
    steps = std::max(steps, rank.steps);
    failed = std::max(failed, rank.failed_steps);
    profiled = std::max(profiled, rank.profiled_steps);
  }
  gaps.evidence("steps", static_cast<double>(steps), "steps");
  gaps.evidence("steady_steps", static_cast<double>(context.shares.most_steady_steps()), "steps");
  if (steps == 0 && failed > 0) {
    gaps.evidence("failed_steps", static_cast<double>(failed), "steps");
    gaps.add("no training step ended well: " + plural(failed, "step", "steps") + " failed",
             {"Look for exceptions that the loop catches and goes on from.", std::nullopt,
              "The summary counts steps that are not failed.",
              "The run was stopped in its first step."});
    return true;
  }
  if (steps == 0) {
    gaps.add("no training step was seen",
             {"Mark the steps: `from stepscope import trace_step`, and `with trace_step(model):` "
              "around each.",
              std::nullopt, "The summary counts steps.", "This command does not train."});
    return true;
  }
  std::string sentence = std::to_string(context.shares.most_steady_steps()) +
                         " steady steps were seen and " +
                         std::to_string(context.settings.min_steady_steps) +
                         " are needed (the first steps, failed and profiled ones do not count)";
  if (profiled > 0) gaps.evidence("profiled_steps", static_cast<double>(profiled), "steps");
  gaps.add(std::move(sentence),
           {"Run at least " +
                std::to_string(context.settings.warmup_steps + context.settings.min_steady_steps) +
                " steps, or lower the limits: --set warmup_steps=2 --set min_steady_steps=10.",
            std::nullopt, "The verdict names where the time goes.",
            "The steps were not steady for another reason."});
  return true;
}

void find_short_ranks(const Context& context, Gaps& gaps) {
  std::vector<int32_t> left_out;
  for (const RankHistory& rank : context.run.ranks) {
    const auto judged = [&](const Shares::Rank& one) { return one.history == &rank; };
    if (rank.rank >= 0 && !context.slow.contains(rank.rank) &&
        std::none_of(context.shares.ranks().begin(), context.shares.ranks().end(), judged))
      left_out.push_back(rank.rank);
  }
  if (left_out.empty()) return;
  gaps.add("ranks with under " + std::to_string(context.settings.min_steady_steps) +
           " steady steps: " + ranges(left_out));
}

void find_input_gap(const Context& context, Gaps& gaps) {
  const auto why = why_not_measured(context.run, Phase::kInput);
  if (!why) return;
  gaps.add("input was not measured: " + *why,
           {"Mark where the loop gets its data: `with stepscope.phase(\"input\"):` around it.",
            std::nullopt, "The summary shows a share for input.", "The loop loads nothing."});
}

void find_sync_gap(const Context& context, Gaps& gaps) {
  const double sync_ms =
      context.shares.share(phase_column({Phase::kSync})) * context.shares.step_ms();
  const std::vector<int32_t> unseen = unseen_ranks(context.run);
  if (!unseen.empty()) {
    if (sync_ms > 0) gaps.evidence("sync_ms", sync_ms, "ms");
    gaps.evidence("unseen_ranks", static_cast<double>(unseen.size()), "ranks");
    const bool known =
        sync_ms > 0 && !any_rank_has(context.run, kFactReadyNotMeasured) && !context.host_time_only;
    gaps.add((known ? "waits " + milliseconds(sync_ms) : "waits a time that was not measured") +
                 " for ranks that no agent reports (" + ranges(unseen) + ")",
             {"Report every node to one hub: stepscope run --hub URL on each.", std::nullopt,
              "The card shows a line for every rank.",
              "The other ranks are observed by runs of their own."});
    return;
  }
  if (context.host_time_only || world_size(context.run) <= 1) return;
  if (const auto why = why_not_measured(context.run, Phase::kSync)) {
    gaps.add("sync was not measured: " + *why);
    return;
  }
  const auto sync = sync_transfer(context);
  if (!sync) {
    gaps.add(
        "how much of sync is transfer was not measured: the ranks have too few steps in common");
    return;
  }
  if (has_sync_points(context.run)) return;
  // Without sync points nothing says who is waited for; much waiting must not pass for "nothing to gain".
  if (const double waiting = sync->sync_share - sync->transfer_share;
      waiting >= context.settings.sync_warning)
    gaps.add("ranks wait for each other " + percent(waiting) +
             " of each step: which one holds the others up is not "
             "judged");
}

}  // namespace

void insufficient_data(const Context& context, Findings& findings) {
  Gaps gaps;
  if (!find_too_few_steps(context, gaps)) {
    if (context.host_time_only)
      gaps.add(
          "device time not measured: parameters are on an accelerator, and host time of a launch "
          "is not device "
          "time. Only step time, input, checkpoint, validation and gc were judged");
    find_input_gap(context, gaps);
    if (const auto why = why_not_measured(context.run, Phase::kForward))
      gaps.add("forward was not measured: " + *why);
    if (const auto why = why_not_measured(context.run, Phase::kOptimizer))
      gaps.add("optimizer was not measured: " + *why);
    find_sync_gap(context, gaps);
    find_short_ranks(context, gaps);
  }
  gaps.finish(findings);
}

}  // namespace stepscope::engine
