// OVERHEAD: what is neither loading nor computing: checkpoint, validation, gc, compile, profiler, a
// user's phase, or a place within `other`. Each is held against the threshold alone; one finding
// names all that passed.
//
//   share, phase, cost_ms_per_step: of the largest that fired
//   predicted_saving = sum of all that fired: an asynchronous save, frozen garbage or less logging
//   takes nearly all of it away
//   checkpoint, validation, profiler: n x median / total time, from 2 occurrences on; the others:
//   share of the steady steps (profiled steps are not steady, and compiling belongs to the warm-up
//   while it lasts)
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "engine/claim.h"
#include "engine/measured.h"
#include "engine/words.h"

namespace stepscope::engine {
namespace {

struct Component {
  std::string evidence;  // checkpoint, other_between_steps, a user's phase
  std::string phase;
  std::string words;  // "38 % ... goes to <words>"
  bool rare = false;
  Interval share;
  Claim claim;
  double median_ms = 0, count = 0;  // of a rare one
};

struct Place {
  const char* part;
  const char* words;
};
constexpr std::array kPlaces = {
    Place{"other_before_forward", "unnamed work before forward"},
    Place{"other_after_backward", "unnamed work between backward and optimizer"},
    Place{"other_after_optimizer", "unnamed work after the optimizer"},
    Place{"other_between_steps", "unnamed work between steps"},
};

class Collector {
 public:
  explicit Collector(const Context& context) : context_(context) {}

  void add_rare(OccurrenceKind kind, const char* phase, const char* words) {
    const auto rare = context_.shares.rare(kind);
    if (!rare) return;
    const Interval share{rare->share, rare->share, rare->share};
    if (const auto claim =
            judge(share, context_.settings.overhead_warning, context_.settings.overhead_critical))
      fired_.push_back({phase, phase, words, true, share, *claim, rare->median_ms, rare->count});
  }

  void add_column(const Column& column, std::string evidence, std::string phase,
                  std::string words) {
    const auto judged = judge_column(context_, column, context_.settings.overhead_warning,
                                     context_.settings.overhead_critical);
    if (judged)
      fired_.push_back({std::move(evidence), std::move(phase), std::move(words), false,
                        judged->share, judged->claim});
  }

  // Certain ones first, then by size.
  std::vector<Component> sorted() {
    std::stable_sort(fired_.begin(), fired_.end(), [](const Component& a, const Component& b) {
      if (a.claim.certain != b.claim.certain) return a.claim.certain;
      return a.share.estimate > b.share.estimate;
    });
    return std::move(fired_);
  }

 private:
  const Context& context_;
  std::vector<Component> fired_;
};

// Evidence is named in snake_case; a user's name may be anything.
std::string snake_case(std::string name) {
  for (char& c : name)
    if (c >= 'A' && c <= 'Z')
      c = static_cast<char>(c - 'A' + 'a');
    else if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9'))
      c = '_';
  return name;
}

std::vector<Component> collect(const Context& context) {
  Collector collector(context);
  collector.add_rare(OccurrenceKind::kCheckpoint, "checkpoint", "checkpoints");
  collector.add_rare(OccurrenceKind::kValidation, "validation", "validation");
  collector.add_column(phase_column({Phase::kGc}), "gc", "gc", "Python's garbage collection");
  if (context.host_time_only) return collector.sorted();
  collector.add_rare(OccurrenceKind::kProfiler, "profiler", "the profiler");
  collector.add_column(phase_column({Phase::kCompile}), "compile", "compile", "compiling");
  // Then what follows backward may be an optimizer's work as well.
  const bool unseen_optimizer = why_not_measured(context.run, Phase::kOptimizer).has_value();
  for (const Place& place : kPlaces)
    if (!unseen_optimizer || std::string_view(place.part) != "other_after_backward")
      collector.add_column(part_column(place.part), place.part, "other", place.words);
  for (const std::string& name : context.shares.user_phases())
    collector.add_column(user_column(name), snake_case(name), name, "\"" + name + "\"");
  return collector.sorted();
}

Advice advice_for(const Component& component) {
  const double gain = component.share.estimate;
  if (component.phase == "checkpoint")
    return {"Save in the background (torch.distributed.checkpoint.async_save), or less often.",
            gain, "checkpoint falls to the copy into memory.",
            "Host memory has no room for a second copy of the state."};
  if (component.phase == "validation")
    return {
        "Validate less often, on a fixed part of the data, with torch.inference_mode() and a "
        "larger batch.",
        gain, "validation falls; its metric stays as steady as you need it.",
        "Every epoch's full metric is required."};
  if (component.phase == "gc")
    return {
        "After the first steps call gc.collect() and gc.freeze(), and gc.disable() with a "
        "gc.collect() every some "
        "hundred steps.",
        gain, "gc falls; memory stays level.",
        "The loop makes reference cycles that hold tensors."};
  if (component.phase == "compile")
    return {
        "Keep shapes and flags from changing between steps: pad to a few sizes, or "
        "torch.compile(dynamic=True). "
        "TORCH_LOGS=recompiles names the guard that failed.",
        gain, "compile is 0 after the warm-up.",
        "The model is meant to be compiled anew in mid-run."};
  if (component.phase == "profiler")
    return {"Profile fewer steps: torch.profiler.schedule with a long wait and repeat=1.", gain,
            "profiler falls to 0 outside the window.", "The profile is what this run is for."};
  if (component.phase == "other")
    return {
        "Give the work there a name to see what it is: with stepscope.phase(\"logging\"): around "
        "it. Usual: logging "
        "or .item() every step, metrics, augmentation.",
        gain, "The named phase shows its own share.", "It is the training's own arithmetic."};
  return {
      "Look into \"" + component.phase + "\": do it less often, or apart from the training thread.",
      gain, "Its share falls.", "It is part of what this step is for."};
}

}  // namespace

void overhead(const Context& context, Findings& findings) {
  if (!context.enough()) return;
  const std::vector<Component> fired = collect(context);
  if (fired.empty()) return;
  const Component& largest = fired.front();
  Claim claim = largest.claim;
  for (const Component& component : fired)  // one critical component makes it critical
    if (component.claim.certain && component.claim.severity == Severity::kCritical)
      claim = component.claim;

  Finding finding = share_finding(context, "OVERHEAD", largest.evidence, largest.share, claim);
  finding.phase = largest.phase;
  finding.cause = largest.evidence;
  finding.title = percent(largest.share.estimate) +
                  (largest.rare ? " of the time" : " of each step") + " goes to " + largest.words;
  double saving = 0;
  for (const Component& component : fired) {
    saving += component.share.estimate;
    finding.advice.push_back(advice_for(component));
    if (&component != &largest) {
      finding.title += ", " + percent(component.share.estimate) + " to " + component.words;
      add_evidence(finding, component.evidence + "_share", component.share.estimate, "share");
    }
    if (!component.rare) continue;
    add_evidence(finding, component.evidence + "_count", component.count, "");
    add_evidence(finding, component.evidence + "_median_ms", component.median_ms, "ms");
  }
  finding.predicted_saving = std::min(1.0, saving);
  if (context.host_time_only) {
    finding.title += " (host time)";
    finding.not_measured.push_back("device time: all times are host time");
  }
  findings.push_back(std::move(finding));
}

}  // namespace stepscope::engine
