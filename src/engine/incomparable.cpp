// What two runs differ in that is not their speed: of the work in a step, of the machines, of what was recorded.
#include <algorithm>
#include <cmath>
#include <map>

#include "engine/compare_runs.h"
#include "engine/measured.h"
#include "engine/words.h"

namespace stepscope::engine {
namespace {

// Batches of other sizes are other work; the last batch of an epoch and packed tokens vary a little.
constexpr double kOtherWork = 0.10, kOtherSamples = 0.02;
constexpr double kOtherCores = 0.05, kOtherMemory = 0.05;

int64_t steady_steps(const RunHistory& run) {  // of the shortest rank that has any
  int64_t least = 0;
  for (const RankHistory& rank : run.ranks) {
    int64_t steps = 0;
    for (const StepBlock& block : rank.steady_blocks()) steps += block.count;
    if (steps > 0) least = least == 0 ? steps : std::min(least, steps);
  }
  return least;
}

// Sum over the ranks of the median of their newest steps.
std::optional<double> samples_a_step(const RunHistory& run) {
  double sum = 0;
  for (const RankHistory& rank : run.ranks) {
    std::vector<int64_t> samples;
    for (const StepSample& step : rank.raw)
      if (step.steady() && step.samples) samples.push_back(*step.samples);
    if (samples.empty()) continue;
    const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
    std::nth_element(samples.begin(), middle, samples.end());
    sum += static_cast<double>(*middle);
  }
  return sum > 0 ? std::optional(sum) : std::nullopt;
}

double backwards_a_step(const RunHistory& run) {
  double backwards = 0, steps = 0;
  for (const RankHistory& rank : run.ranks) {
    backwards += static_cast<double>(rank.steady_backwards);
    for (const StepBlock& block : rank.steady_blocks()) steps += static_cast<double>(block.count);
  }
  return steps > 0 ? backwards / steps : 0;
}

bool differ(double a, double b, double share) {
  return std::fabs(a - b) > share * std::max(std::fabs(a), std::fabs(b));
}

double cores(const RunHistory& run) {
  double sum = 0;
  for (const NodeHistory& node : run.nodes) sum += node.cores_usable;
  return sum;
}

double memory_limit(const RunHistory& run) {
  double sum = 0;
  for (const NodeHistory& node : run.nodes)
    sum += static_cast<double>(node.memory_limit_bytes.value_or(0));
  return sum;
}

std::string first(const RunHistory& run, std::string RankHistory::* member) {
  for (const RankHistory& rank : run.ranks)
    if (!(rank.*member).empty()) return rank.*member;
  return "";
}

std::string count(double value) {
  return std::fabs(value - std::round(value)) < 0.005 ? std::to_string(std::llround(value))
                                                      : number(value);
}

class Incomparables {
 public:
  Incomparables(const RunHistory& a, const RunHistory& b) : a_(a), b_(b) {}

  std::vector<Incomparable> take() {
    few();
    work();
    machines();
    recorded();
    return std::move(out_);
  }

 private:
  void add(Obstacle obstacle, const char* what, const std::string& a, const std::string& b,
           const std::string& text) {
    out_.push_back({obstacle, what, a, b, text});
  }
  void remark_if_other(const char* what, const std::string& a, const std::string& b,
                       const char* name) {
    if (a == b || a.empty() || b.empty()) return;
    add(Obstacle::kRemark, what, a, b, std::string(name) + ": " + a + " in A, " + b + " in B");
  }

  void few() {
    for (const RunHistory* run : {&a_, &b_}) {
      const int64_t steps = steady_steps(*run);
      const int64_t least = run->settings.min_steady_steps;
      if (steps >= std::max<int64_t>(least, 2)) continue;
      add(Obstacle::kTooFew, "steps", std::to_string(steady_steps(a_)),
          std::to_string(steady_steps(b_)),
          std::string(run == &a_ ? "A" : "B") + " has " +
              plural(steps, "steady step", "steady steps") + ", " + std::to_string(least) +
              " are needed");
    }
  }

  void work() {
    if (const auto a = world_size(a_), b = world_size(b_); a != b)
      add(Obstacle::kWork, "world_size", std::to_string(a), std::to_string(b),
          plural(a, "rank", "ranks") + " in A, " + std::to_string(b) + " in B");
    const auto a = samples_a_step(a_), b = samples_a_step(b_);
    if (a && b && differ(*a, *b, kOtherSamples))
      add(differ(*a, *b, kOtherWork) ? Obstacle::kWork : Obstacle::kRemark, "samples_per_step",
          count(*a), count(*b), count(*a) + " samples a step in A, " + count(*b) + " in B");
    if (const double c = backwards_a_step(a_), d = backwards_a_step(b_); differ(c, d, kOtherWork))
      add(Obstacle::kWork, "backwards_per_step", count(c), count(d),
          count(c) + " backward passes a step in A, " + count(d) + " in B");
    if (host_time_only(a_) != host_time_only(b_))
      add(Obstacle::kWork, "accelerator", host_time_only(a_) ? "yes" : "no",
          host_time_only(b_) ? "yes" : "no",
          std::string("the parameters are on an accelerator in ") +
              (host_time_only(a_) ? "A" : "B") + " alone");
    if (any_rank_has(a_, kFactExplicitSteps) != any_rank_has(b_, kFactExplicitSteps))
      add(Obstacle::kRemark, "trace_step", any_rank_has(a_, kFactExplicitSteps) ? "yes" : "no",
          any_rank_has(b_, kFactExplicitSteps) ? "yes" : "no",
          std::string("trace_step makes the steps of ") +
              (any_rank_has(a_, kFactExplicitSteps) ? "A" : "B") + " alone");
  }

  void machines() {
    if (const double a = cores(a_), b = cores(b_); a > 0 && b > 0 && differ(a, b, kOtherCores))
      remark_if_other("cores", number(a), number(b), "usable cores");
    if (const double a = memory_limit(a_), b = memory_limit(b_);
        a > 0 && b > 0 && differ(a, b, kOtherMemory))
      remark_if_other("memory_limit", bytes(a), bytes(b), "memory limit");
    remark_if_other("nodes", std::to_string(a_.nodes.size()), std::to_string(b_.nodes.size()),
                    "nodes");
    if (a_.nodes.size() == 1 && b_.nodes.size() == 1)
      remark_if_other("node", a_.nodes[0].node, b_.nodes[0].node, "host");
    remark_if_other("torch", first(a_, &RankHistory::torch_version),
                    first(b_, &RankHistory::torch_version), "torch");
    remark_if_other("python", first(a_, &RankHistory::python_version),
                    first(b_, &RankHistory::python_version), "Python");
  }

  void recorded() {
    if (!a_.id.empty() && a_.id == b_.id && a_.duration_ns == b_.duration_ns)
      add(Obstacle::kRemark, "same_run", a_.id, b_.id, "A and B are one and the same run");
    const int64_t a = a_.settings.warmup_steps, b = b_.settings.warmup_steps;
    remark_if_other("warmup_steps", std::to_string(a), std::to_string(b), "warm-up steps left out");
    for (const RunHistory* run : {&a_, &b_}) {
      const std::string name = run == &a_ ? "A" : "B";
      if (run->live) remark("live", name + " is still running");
      if (run->exit_code.value_or(0) != 0)
        remark("exit_code", name + " ended with exit code " + std::to_string(*run->exit_code));
      if (const auto unseen = unseen_ranks(*run); !run->ranks.empty() && !unseen.empty())
        remark("unseen_ranks", name + " has no record of " +
                                   (unseen.size() == 1 ? "rank " : "ranks ") + ranges(unseen));
      int64_t dropped = 0;
      for (const RankHistory& rank : run->ranks) dropped += rank.records_dropped;
      if (dropped > 0) remark("dropped", name + " lost " + plural(dropped, "record", "records"));
    }
  }
  void remark(const char* what, const std::string& text) {
    add(Obstacle::kRemark, what, "", "", text);
  }

  const RunHistory &a_, &b_;
  std::vector<Incomparable> out_;
};

}  // namespace

std::vector<Incomparable> incomparable(const RunHistory& a, const RunHistory& b) {
  return Incomparables(a, b).take();
}

}  // namespace stepscope::engine
