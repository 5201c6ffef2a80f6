#include "simulator/simulator.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "model/facts.h"

namespace stepscope::simulator {
namespace {

constexpr int32_t kRanksANode = 8;
constexpr int64_t kStuckForNs = 600'000'000'000;
constexpr double kTokensAMs = 100, kLeastFactor = 0.05;
constexpr uint64_t kFirstGroup = 0x5157;
constexpr double kHourNs = 3600e9;

int32_t nodes_of(const Options& options) {
  if (options.nodes > 0) return std::min(options.nodes, options.ranks);
  return (options.ranks + kRanksANode - 1) / kRanksANode;
}

bool is_after_sync(Phase phase) {
  return phase == Phase::kOptimizer || phase == Phase::kCheckpoint || phase == Phase::kValidation ||
         phase == Phase::kOther || phase == Phase::kProfiler;
}

}  // namespace

Status Options::check() const {
  const auto error = [](const std::string& what, const std::string& hint) {
    return Error{what, hint};
  };
  if (ranks < 1 || ranks > 1'000'000)
    return error(std::to_string(ranks) + " ranks", "use 1 to 1000000");
  if (steps < 1 || steps > 10'000'000)
    return error(std::to_string(steps) + " steps", "use 1 to 10000000");
  if (nodes < 0 || nodes > ranks)
    return error(std::to_string(nodes) + " nodes of " + std::to_string(ranks) + " ranks",
                 "use at most one a rank");
  for (const Fault& fault : faults) {
    const int32_t most = fault.who == Who::kNode ? nodes_of(*this) : ranks;
    const bool named = fault.who == Who::kRank || fault.who == Who::kNode;
    const int32_t number = named ? fault.number : fault.rank.value_or(0);
    if (number >= most)
      return error(std::string("a fault is at ") + (fault.who == Who::kNode ? "node " : "rank ") +
                       std::to_string(number) + ", but there are " + std::to_string(most),
                   "they are numbered from 0");
    if (fault.ramp && fault.to && *fault.to == fault.from)
      return error("a ramp over no step", "give it from= and to=");
  }
  return ok();
}

double Simulator::Extra::sum() const { return std::accumulate(ms.begin(), ms.end(), 0.0); }

Simulator::Simulator(Options options)
    : options_(std::move(options)), nodes_(nodes_of(options_)), random_(options_.seed) {
  for (const Fault& fault : options_.faults) options_.tokens |= fault.tokens;
  std::uniform_real_distribution<double> even(-1, 1);
  for (int32_t r = 0; r < options_.ranks; ++r) {
    Rank& rank = ranks_.emplace_back();
    // Drawn in any case: what the clocks show changes nothing of what happens.
    rank.offset_ns = static_cast<int64_t>((even(random_) + 1) / 2 * options_.clock_hours * kHourNs);
    rank.drift = even(random_) * options_.clock_ppm * 1e-6;
    rank.speed = 1 + options_.spread * normal_(random_);
    draw_factor(rank);
  }
}

int32_t Simulator::node_of(int32_t rank) const {
  return static_cast<int32_t>(static_cast<int64_t>(rank) * nodes_ / options_.ranks);
}

RunHistory Simulator::start() {
  RunHistory run;
  run.name = "simulated";
  run.live = true;
  for (int32_t r = 0; r < options_.ranks; ++r) {
    RankHistory& rank = run.ranks.emplace_back();
    rank.rank = r;
    rank.world_size = options_.ranks;
    rank.node = "node" + std::to_string(node_of(r));
    rank.local_rank = r > 0 && run.ranks[static_cast<size_t>(r) - 1].node == rank.node
                          ? run.ranks[static_cast<size_t>(r) - 1].local_rank + 1
                          : 0;
    rank.facts = kFactDataLoader | kFactDdp | kFactRootModule;
  }
  for (int32_t n = 0; n < nodes_; ++n) run.nodes.emplace_back().node = "node" + std::to_string(n);
  return run;
}

double Simulator::draw() {
  double noise = normal_(random_);
  if (options_.heavy) {
    double square = 0;
    for (int i = 0; i < 3; ++i) {
      const double one = normal_(random_);
      square += one * one;
    }
    noise /= std::sqrt(square / 3) * std::sqrt(3.0);
  }
  return noise;
}

void Simulator::draw_factor(Rank& rank) {
  const double kept = options_.persistence;
  rank.noise = kept * rank.noise + std::sqrt(1 - kept * kept) * draw();
  rank.factor = std::max(kLeastFactor, 1 + options_.noise * rank.noise);
}

int64_t Simulator::clock(const Rank& rank, double ms) const {
  return rank.offset_ns + static_cast<int64_t>(ms * 1e6 * (1 + rank.drift));
}

bool Simulator::applies(const Fault& fault, int32_t rank) const {
  switch (*fault.who) {
    case Who::kRank:
      return rank == fault.number;
    case Who::kNode:
      return node_of(rank) == fault.number;
    case Who::kAll:
      return true;
    case Who::kRotating:
    case Who::kSpike:
      return false;  // drawn anew
  }
  return false;
}

double Simulator::amount(const Fault& fault, int64_t step) const {
  if (step < fault.from || step > fault.to.value_or(INT64_MAX)) return 0;
  const double full = fault.add_share > 0 ? fault.add_share * options_.step_ms() : fault.add_ms;
  if (!fault.ramp) return full;
  const auto end = static_cast<double>(fault.to.value_or(options_.steps - 1));
  const double steps = std::max(1.0, end - static_cast<double>(fault.from));
  return full * std::min(1.0, static_cast<double>(step - fault.from) / steps);
}

std::vector<Simulator::Extra> Simulator::extras(int64_t step) {
  std::vector<Extra> out(ranks_.size());
  for (const Fault& fault : options_.faults) {
    if (fault.what != What::kAdd) continue;
    const double ms = amount(fault, step);
    const auto phase = static_cast<size_t>(fault.phase);
    if (fault.who == Who::kRotating || fault.who == Who::kSpike) {
      const auto drawn = static_cast<size_t>(random_() % ranks_.size());
      const size_t rank = fault.rank ? static_cast<size_t>(*fault.rank) : drawn;
      const bool now =
          fault.who == Who::kRotating || (step - fault.from) % fault.every == fault.every / 2;
      if (now) out[rank].ms[phase] += ms;
      continue;
    }
    if (ms > 0)
      for (int32_t r = 0; r < options_.ranks; ++r)
        if (applies(fault, r)) out[static_cast<size_t>(r)].ms[phase] += ms;
  }
  return out;
}

// Who is there: when that changes, a group of its own begins.
void Simulator::elect(int64_t step) {
  uint32_t members = 0;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    ranks_[r].present = true;
    for (const Fault& fault : options_.faults) {
      if (fault.number != static_cast<int32_t>(r)) continue;
      if (fault.what == What::kLeave && step >= fault.from) ranks_[r].present = false;
      if (fault.what == What::kJoin && step < fault.from) ranks_[r].present = false;
    }
    members += ranks_[r].present ? 1 : 0;
  }
  if (members == members_) return;
  double newest = 0;
  for (const Rank& rank : ranks_) newest = std::max(newest, rank.now_ms);
  for (Rank& rank : ranks_)
    if (rank.present && rank.now_ms == 0) rank.now_ms = newest;
  members_ = members;
  group_ = group_ == 0 ? kFirstGroup : group_ + 1;
  index_ = 0;
}

bool Simulator::stick(RunHistory& run, int64_t step) {
  const auto stuck =
      std::find_if(options_.faults.begin(), options_.faults.end(),
                   [&](const Fault& f) { return f.what == What::kStuck && step >= f.from; });
  if (stuck == options_.faults.end()) return false;
  for (RankHistory& rank : run.ranks) {
    const bool is_it = rank.rank == stuck->number;
    rank.doing =
        Doing{is_it ? std::string(phase_name(stuck->phase)) : "sync", step, kStuckForNs, true};
  }
  run.live = true;
  return true;
}

// From the sync before to this one of the step: the share of the computing, and what a fault adds in front of it.
double Simulator::before_ready(const Rank& rank, const Extra& extra, int32_t sync) const {
  const double n = options_.syncs;
  double ms = rank.factor * rank.speed * (options_.forward_ms + options_.backward_ms) / n;
  if (sync == 0) {
    ms += rank.factor * rank.speed * options_.input_ms;
    for (const Phase phase : {Phase::kInput, Phase::kH2d, Phase::kForward, Phase::kCompile})
      ms += extra.ms[static_cast<size_t>(phase)];
  }
  if (sync == options_.syncs / 2)
    for (const Phase phase : {Phase::kBackward, Phase::kGc})
      ms += extra.ms[static_cast<size_t>(phase)];
  return ms;
}

bool Simulator::step(RunHistory& run) {
  const int64_t step = next_;
  if (step >= options_.steps || stick(run, step)) return false;
  ++next_;
  elect(step);
  const std::vector<Extra> extra = extras(step);
  std::vector<StepSample> samples(ranks_.size());
  for (Rank& rank : ranks_) rank.begin_ms = rank.now_ms;
  for (int32_t k = 0; k < options_.syncs; ++k) {
    double last = 0;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      if (!ranks_[r].present) continue;
      ranks_[r].now_ms += before_ready(ranks_[r], extra[r], k);
      last = std::max(last, ranks_[r].now_ms);
    }
    const double leave = last + options_.transfer_ms / options_.syncs;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      Rank& rank = ranks_[r];
      if (!rank.present) continue;
      SyncPoint sync{group_, index_, members_, clock(rank, rank.now_ms), clock(rank, leave), true};
      samples[r][Phase::kSync] += sync.wait_ns();
      if (members_ > 1) samples[r].syncs.push_back(sync);
      rank.now_ms = leave;
    }
    ++index_;
  }
  for (int32_t r = 0; r < options_.ranks; ++r)
    if (ranks_[static_cast<size_t>(r)].present)
      finish(run, r, std::move(samples[static_cast<size_t>(r)]), extra[static_cast<size_t>(r)]);
  int64_t longest = 0;
  for (const RankHistory& rank : run.ranks)
    longest = std::max(longest, rank.last_end_ns - rank.first_begin_ns);
  run.duration_ns = longest;
  return true;
}

void Simulator::finish(RunHistory& run, int32_t r, StepSample sample, const Extra& extra) {
  Rank& rank = ranks_[static_cast<size_t>(r)];
  const double scale = rank.factor * rank.speed;
  // The next sync's work begins here: its noise too.
  draw_factor(rank);
  const double after = rank.factor * rank.speed;
  std::array<double, kPhaseCount> ms = extra.ms;
  const auto add = [&](Phase phase, double value) { ms[static_cast<size_t>(phase)] += value; };
  add(Phase::kInput, scale * options_.input_ms);
  add(Phase::kForward, scale * options_.forward_ms);
  add(Phase::kBackward, scale * options_.backward_ms);
  add(Phase::kOptimizer, after * options_.optimizer_ms);
  add(Phase::kOther, after * options_.other_ms);
  for (int p = 0; p < kPhaseCount; ++p) {
    const auto phase = static_cast<Phase>(p);
    if (is_after_sync(phase)) rank.now_ms += ms[static_cast<size_t>(p)];
    if (phase != Phase::kSync)
      sample[phase] = static_cast<int64_t>(ms[static_cast<size_t>(p)] * 1e6 * (1 + rank.drift));
  }
  sample.parts.other_after_optimizer_ns = sample[Phase::kOther];
  sample.rank = r;
  sample.step = run.ranks[static_cast<size_t>(r)].raw.empty()
                    ? 0
                    : run.ranks[static_cast<size_t>(r)].raw.back().step + 1;
  sample.begin_ns = clock(rank, rank.begin_ms);
  sample.end_ns = clock(rank, rank.now_ms);
  // Rounding and drift: the phases must add up to the step.
  int64_t sum = 0;
  for (const int64_t ns : sample.phase_ns) sum += ns;
  sample[Phase::kOther] = std::max<int64_t>(0, sample[Phase::kOther] + sample.total_ns() - sum);
  sample.fetches = sample.backwards = sample.optimizer_steps = 1;
  if (options_.tokens)
    sample.samples = std::llround(kTokensAMs * (options_.step_ms() + extra.sum()));
  (void)run.ranks[static_cast<size_t>(r)].add(std::move(sample), run.settings);
}

RunHistory simulate(const Options& options) {
  Simulator simulator(options);
  RunHistory run = simulator.start();
  while (simulator.step(run)) {
  }
  const bool stuck = std::any_of(run.ranks.begin(), run.ranks.end(),
                                 [](const RankHistory& rank) { return rank.doing.has_value(); });
  run.live = stuck;
  return run;
}

}  // namespace stepscope::simulator
