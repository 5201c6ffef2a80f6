#include "engine/compare_runs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "engine/mean_interval.h"
#include "engine/measured.h"

namespace stepscope::engine {
namespace {

constexpr size_t kMostPoints = 2000;
constexpr size_t kTotal = kPhaseCount, kOwn = kPhaseCount + 1, kFirstUser = kPhaseCount + 2;
constexpr auto kSync = static_cast<size_t>(Phase::kSync);

double named(const std::map<std::string, double>& values, const std::string& name) {
  const auto it = values.find(name);
  return it == values.end() ? 0 : it->second;
}

// A column: a phase, the total, the rank's own time, then the users' phases.
double value_of(const StepBlock& block, size_t column, const std::vector<std::string>& users) {
  if (column >= kFirstUser) return named(block.user_mean_ns, users[column - kFirstUser]);
  const auto phase = [&](size_t p) {  // a user's phase of a built-in name belongs to that one
    return block.mean_ns[p] + (block.user_mean_ns.empty()
                                   ? 0
                                   : named(block.user_mean_ns, std::string(kPhaseNames[p])));
  };
  if (column == kTotal) return block.mean_ns[kTotal];
  if (column == kOwn) return block.mean_ns[kTotal] - phase(kSync);
  return phase(column);
}

struct RankSteps {
  const RankHistory* history;
  std::vector<StepBlock> blocks;
  double steps = 0;
  std::vector<double> means;  // by column
};

// One run, its ranks laid over each other by the number of steady steps passed.
class Run {
 public:
  explicit Run(const RunHistory& run) : run_(run) {
    for (const RankHistory& rank : run.ranks) {
      RankSteps steps{&rank, rank.steady_blocks(), 0, {}};
      for (const StepBlock& block : steps.blocks) {
        steps.steps += static_cast<double>(block.count);
        coarsest_ = std::max(coarsest_, static_cast<double>(block.count));
      }
      if (steps.blocks.empty()) continue;
      longest_ = std::max(longest_, steps.steps);
      ranks_.push_back(std::move(steps));
    }
  }

  std::set<std::string> users() const {
    std::set<std::string> names;
    for (const RankSteps& rank : ranks_)
      for (const StepBlock& block : rank.blocks)
        for (const auto& [name, ns] : block.user_mean_ns)
          if (!phase_from_name(name)) names.insert(name);
    return names;
  }

  void use(const std::vector<std::string>& users) {
    users_ = &users;
    for (RankSteps& rank : ranks_) {
      rank.means.assign(kFirstUser + users.size(), 0);
      for (const StepBlock& block : rank.blocks)
        for (size_t c = 0; c < rank.means.size(); ++c)
          rank.means[c] +=
              value_of(block, c, users) * static_cast<double>(block.count) / rank.steps;
    }
  }

  // Mean over the ranks of their means, as the card has it; how sure, from all ranks together.
  Mean mean(size_t column) const {
    std::vector<const RankSteps*> all;
    double sum = 0;
    for (const RankSteps& rank : ranks_) {
      all.push_back(&rank);
      sum += rank.means[column];
    }
    Mean mean = mean_of(series(all, column));
    mean.value = sum / static_cast<double>(ranks_.size());
    return mean;
  }
  Mean mean(const RankSteps& rank, size_t column) const { return mean_of(series({&rank}, column)); }

  // 0 may mean that nobody could have seen it.
  bool measured(size_t column) const {
    if (column == kTotal || column == kOwn) return true;
    double most = 0;
    for (const RankSteps& rank : ranks_) most = std::max(most, rank.means[column]);
    if (most > 0) return true;
    return column < kPhaseCount && !why_not_measured(run_, static_cast<Phase>(column));
  }

  const std::vector<RankSteps>& ranks() const { return ranks_; }
  int64_t shortest() const {
    double least = longest_;
    for (const RankSteps& rank : ranks_) least = std::min(least, rank.steps);
    return static_cast<int64_t>(least);
  }
  std::optional<double> warmup_ms() const {
    double ns = 0, steps = 0;
    for (const RankHistory& rank : run_.ranks) {
      ns += static_cast<double>(rank.warmup_total_ns);
      steps += static_cast<double>(rank.warmup_steps);
    }
    return steps > 0 ? std::optional(ns / steps / 1e6) : std::nullopt;
  }

 private:
  WeightedSeries series(const std::vector<const RankSteps*>& ranks, size_t column) const {
    const double width =
        std::max(coarsest_, std::ceil(longest_ / static_cast<double>(kMostPoints)));
    const auto points = static_cast<size_t>(std::ceil(longest_ / width));
    std::vector<double> weight(points), sum(points);
    for (const RankSteps* rank : ranks) {
      double passed = 0;
      for (const StepBlock& block : rank->blocks) {
        const auto steps = static_cast<double>(block.count);
        const auto at = std::min(points - 1, static_cast<size_t>((passed + steps / 2) / width));
        weight[at] += steps;
        sum[at] += steps * value_of(block, column, *users_);
        passed += steps;
      }
    }
    WeightedSeries out;
    for (size_t i = 0; i < points; ++i) {
      if (weight[i] <= 0) continue;
      out.weight.push_back(weight[i]);
      out.value.push_back(sum[i] / weight[i]);
    }
    return out;
  }

  const RunHistory& run_;
  std::vector<RankSteps> ranks_;
  double longest_ = 0, coarsest_ = 1;  // steps of a rank, of a block
  const std::vector<std::string>* users_ = nullptr;
};

Change change_of(const Mean& a, const Mean& b, double level, double least_ms) {
  const Interval d = difference(a, b, level);
  Change change{a.value / 1e6, b.value / 1e6, d.estimate / 1e6, {}, {}, false};
  if (!std::isfinite(d.low)) return change;
  change.low_ms = d.low / 1e6;
  change.high_ms = d.high / 1e6;
  change.real = (d.low > 0 || d.high < 0) && std::fabs(d.estimate) / 1e6 >= least_ms;
  return change;
}

class Comparer {
 public:
  Comparer(const RunHistory& a, const RunHistory& b) : a_(a), b_(b) {
    std::set<std::string> names = a_.users();
    names.merge(b_.users());
    users_.assign(names.begin(), names.end());
    a_.use(users_);
    b_.use(users_);
  }

  RunChange compare() {
    if (a_.ranks().empty() || b_.ranks().empty()) return {};
    out_.steps_a = a_.shortest();
    out_.steps_b = b_.shortest();
    step();
    phases();
    ranks();
    out_.warmup.a_ms = a_.warmup_ms();
    out_.warmup.b_ms = b_.warmup_ms();
    if (out_.warmup.a_ms && out_.warmup.b_ms)
      out_.warmup.change_ms = *out_.warmup.b_ms - *out_.warmup.a_ms;
    return std::move(out_);
  }

 private:
  void step() {
    const Mean a = a_.mean(kTotal);
    step_ms_ = a.value / 1e6;
    out_.step = change_of(a, b_.mean(kTotal), kChangeLevel, kLeastShare * step_ms_);
    if (step_ms_ <= 0) return;
    out_.share = *out_.step.change_ms / step_ms_;
    if (out_.step.low_ms) {
      out_.low_share = *out_.step.low_ms / step_ms_;
      out_.high_share = *out_.step.high_ms / step_ms_;
      out_.detectable_share = std::max(kLeastShare, (*out_.high_share - *out_.low_share) / 2);
    }
    if (out_.step.real)
      out_.direction = *out_.step.change_ms > 0 ? Direction::kSlower : Direction::kFaster;
  }

  void phases() {
    std::vector<size_t> columns;
    for (size_t p = 0; p < kPhaseCount; ++p) columns.push_back(p);
    for (size_t u = 0; u < users_.size(); ++u) columns.push_back(kFirstUser + u);
    const auto measured = [&](size_t c) { return a_.measured(c) && b_.measured(c); };
    const auto judged =
        static_cast<double>(std::count_if(columns.begin(), columns.end(), measured));
    for (const size_t c : columns) {
      const bool user = c >= kFirstUser;
      PhaseChange row{user ? users_[c - kFirstUser] : std::string(kPhaseNames[c]), user, {}};
      // A user's phase that one run lacks took no time there.
      if (measured(c) || user) {
        row.change = change_of(a_.mean(c), b_.mean(c), kChangeLevel / std::max(judged, 1.0),
                               kLeastPhaseShare * step_ms_);
      } else {
        if (a_.measured(c)) row.change.a_ms = a_.mean(c).value / 1e6;
        if (b_.measured(c)) row.change.b_ms = b_.mean(c).value / 1e6;
      }
      out_.phases.push_back(std::move(row));
    }
  }

  void ranks() {
    std::map<int32_t, const RankSteps*> of_a;
    for (const RankSteps& rank : a_.ranks()) of_a[rank.history->rank] = &rank;
    std::vector<std::pair<const RankSteps*, const RankSteps*>> both;
    for (const RankSteps& rank : b_.ranks())
      if (const auto it = of_a.find(rank.history->rank); it != of_a.end())
        both.emplace_back(it->second, &rank);
    if (both.size() < 2) return;
    const double level = kChangeLevel / static_cast<double>(both.size());
    for (const auto& [a, b] : both) {
      RankChange row{b->history->rank, b->history->node, {}, {}, 0};
      row.own = change_of(a_.mean(*a, kOwn), b_.mean(*b, kOwn), level, kLeastShare * step_ms_);
      const double sign = *row.own.change_ms < 0 ? -1 : 1;
      for (size_t c = 0; c < b->means.size(); ++c) {
        if (c == kTotal || c == kOwn || c == kSync) continue;
        const double change = (b->means[c] - a->means[c]) / 1e6;
        if (change * sign <= row.phase_change_ms * sign) continue;
        row.phase_change_ms = change;
        row.phase = c >= kFirstUser ? users_[c - kFirstUser] : std::string(kPhaseNames[c]);
      }
      if (out_.step.real && row.own.real && *row.own.change_ms * *out_.step.change_ms > 0)
        out_.from_ranks.push_back(row.rank);
      out_.ranks.push_back(std::move(row));
    }
  }

  Run a_, b_;
  std::vector<std::string> users_;
  double step_ms_ = 0;
  RunChange out_;
};

}  // namespace

RunChange compare_runs(const RunHistory& a, const RunHistory& b) {
  return Comparer(a, b).compare();
}

}  // namespace stepscope::engine
