#include "model/history.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace stepscope {
namespace {

constexpr int64_t kFanIn = 10;  // blocks of a level that make one of the next
// A step that compiles is warm-up only this early; later it is a cost that belongs to the run.
constexpr int64_t kCompileWarmupSteps = 100;

// Never retroactive: a step that was counted as steady stays so when a later one compiles.
bool in_warmup(const StepSample& s, const Settings& settings) {
  return s.step < settings.warmup_steps || (s.compiled && s.step < kCompileWarmupSteps);
}

StepBlock block_of(const StepSample& s) {
  StepBlock b;
  b.first_step = b.last_step = s.step;
  b.begin_ns = s.begin_ns;
  b.end_ns = s.end_ns;
  b.count = 1;
  for (size_t i = 0; i <= kPhaseCount; ++i) {
    const int64_t ns = i < kPhaseCount ? s.phase_ns[i] : s.total_ns();
    b.min_ns[i] = b.median_ns[i] = b.max_ns[i] = ns;
    b.mean_ns[i] = static_cast<double>(ns);
  }
  for (const auto& [name, ns] : s.user_phase_ns) b.user_mean_ns[name] += static_cast<double>(ns);
  const auto part = [&b](std::string_view name, int64_t ns) {
    if (ns != 0) b.part_mean_ns.emplace(name, static_cast<double>(ns));
  };
  part("loss", s.parts.loss_ns);
  part("epoch_start", s.parts.epoch_start_ns);
  part("recompute", s.parts.recompute_ns);
  part("other_before_forward", s.parts.other_before_forward_ns);
  part("other_after_backward", s.parts.other_after_backward_ns);
  part("other_after_optimizer", s.parts.other_after_optimizer_ns);
  part("other_between_steps", s.parts.other_between_steps_ns);
  return b;
}

// Half of the middle two when the number is even.
int64_t median_of(std::vector<int64_t>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 != 0) return *middle;
  const int64_t below = *std::max_element(values.begin(), middle);
  return below + (*middle - below) / 2;
}

// Names that only some children have count as 0 in the others.
void add_weighted(std::map<std::string, double>& sums, const std::map<std::string, double>& means,
                  double weight) {
  for (const auto& [name, mean] : means) sums[name] += mean * weight;
}

// One block of blocks that follow each other. The median is that of the children's medians.
StepBlock merge(const std::vector<StepBlock>& children) {
  StepBlock b;
  b.first_step = children.front().first_step;
  b.last_step = children.back().last_step;
  b.begin_ns = children.front().begin_ns;
  b.end_ns = children.back().end_ns;
  for (const StepBlock& child : children) {
    const auto weight = static_cast<double>(child.count);
    b.count += child.count;
    add_weighted(b.user_mean_ns, child.user_mean_ns, weight);
    add_weighted(b.part_mean_ns, child.part_mean_ns, weight);
  }
  const auto count = static_cast<double>(b.count);
  for (auto* means : {&b.user_mean_ns, &b.part_mean_ns})
    for (auto& [name, sum] : *means) sum /= count;
  std::vector<int64_t> medians(children.size());
  for (size_t i = 0; i <= kPhaseCount; ++i) {
    double sum = 0;
    b.min_ns[i] = INT64_MAX;
    b.max_ns[i] = INT64_MIN;
    for (size_t c = 0; c < children.size(); ++c) {
      const StepBlock& child = children[c];
      sum += child.mean_ns[i] * static_cast<double>(child.count);
      b.min_ns[i] = std::min(b.min_ns[i], child.min_ns[i]);
      b.max_ns[i] = std::max(b.max_ns[i], child.max_ns[i]);
      medians[c] = child.median_ns[i];
    }
    b.mean_ns[i] = sum / count;
    b.median_ns[i] = median_of(medians);
  }
  return b;
}

using Made = std::vector<std::pair<int, StepBlock>>;

int64_t covered_until(const std::vector<KeptList<StepBlock>>& rollups, size_t level) {
  return level < rollups.size() && !rollups[level].empty() ? rollups[level].back().end_ns
                                                           : INT64_MIN;
}

// Appends the block and, where it is the tenth since the last block above, makes that one too.
void push_block(std::vector<KeptList<StepBlock>>& rollups, size_t level, StepBlock block,
                Made& made) {
  if (rollups.size() <= level) rollups.resize(level + 1);
  KeptList<StepBlock>& blocks = rollups[level];
  made.emplace_back(static_cast<int>(level), block);
  blocks.push_back(std::move(block));
  const int64_t above_ns = covered_until(rollups, level + 1);
  std::vector<StepBlock> loose;
  for (auto it = blocks.rbegin();
       it != blocks.rend() && it->begin_ns >= above_ns && loose.size() < kFanIn; ++it)
    loose.push_back(*it);
  if (loose.size() == kFanIn) {
    std::reverse(loose.begin(), loose.end());
    push_block(rollups, level + 1, merge(loose), made);
  }
  if (rollups[level].size() > RankHistory::kMaxRollups) rollups[level].pop_front();
}

int32_t count_unrolled(const RankHistory& r) {
  const int64_t from_ns = covered_until(r.rollups, 0);
  return static_cast<int32_t>(std::count_if(r.raw.begin(), r.raw.end(), [&](const StepSample& s) {
    return s.steady() && s.begin_ns >= from_ns;
  }));
}

// The steady steps at the end of raw become one block; usually ten.
void roll_up(RankHistory& r, Made& made) {
  std::vector<StepBlock> children;
  for (auto it = r.raw.rbegin(); it != r.raw.rend() && std::ssize(children) < r.unrolled_steps;
       ++it)
    if (it->steady()) children.push_back(block_of(*it));
  r.unrolled_steps = 0;
  if (children.empty()) return;
  std::reverse(children.begin(), children.end());
  push_block(r.rollups, 0, merge(children), made);
}

// A steady step that leaves raw must be in a rollup; only after a long stretch without steady steps
// it is not yet.
void trim_raw(RankHistory& r, size_t max_raw, Made& made) {
  while (r.raw.size() > max_raw) {
    const StepSample& oldest = r.raw.front();
    if (r.unrolled_steps > 0 && oldest.steady() && oldest.begin_ns >= covered_until(r.rollups, 0))
      roll_up(r, made);
    r.raw.pop_front();
  }
}

void count_step(RankHistory& r, const StepSample& s) {
  if (r.steps + r.failed_steps == 0) r.first_begin_ns = s.begin_ns;
  r.last_end_ns = std::max(r.last_end_ns, s.end_ns);
  if (s.profiled) ++r.profiled_steps;
  if (s.incomplete) ++r.incomplete_steps;
  if (s.failed) {
    ++r.failed_steps;
    return;
  }
  ++r.steps;
  r.skipped_steps += s.skipped_steps;
  if (s.warmup) {
    ++r.warmup_steps;
    r.warmup_total_ns += s.total_ns();
  }
  if (!s.steady()) return;
  r.steady_fetches += s.fetches;
  r.steady_backwards += s.backwards;
  r.steady_optimizer_steps += s.optimizer_steps;
  if (!s.samples) return;
  r.steady_samples += *s.samples;
  r.steady_samples_ns += s.total_ns();
}

uint32_t phases_with_time(const std::array<int64_t, kPhaseCount>& phases) {
  uint32_t bits = 0;
  for (size_t i = 0; i < kPhaseCount; ++i) bits |= static_cast<uint32_t>(phases[i] > 0) << i;
  return bits;
}

// Every second is dropped: the rest still covers the whole run.
void halve(KeptList<MemorySample>& memory) {
  size_t kept = 0;
  for (size_t i = 0; i < memory.size(); i += 2) memory[kept++] = memory[i];
  memory.resize(kept);
}

}  // namespace

Made RankHistory::add(StepSample step, const Settings& settings) {
  Made made;
  step.warmup = in_warmup(step, settings);
  count_step(*this, step);
  phases_seen |= phases_with_time(step.phase_ns);
  if (unrolled_steps < 0) unrolled_steps = count_unrolled(*this);
  const bool is_steady = step.steady();
  raw.push_back(std::move(step));
  if (is_steady && ++unrolled_steps >= kFanIn) roll_up(*this, made);
  trim_raw(*this, kMaxRaw, made);
  return made;
}

void RankHistory::see_phases() {
  phases_seen = 0;
  for (const StepSample& step : raw) phases_seen |= phases_with_time(step.phase_ns);
  for (const KeptList<StepBlock>& level : rollups)
    for (const StepBlock& block : level)
      for (size_t i = 0; i < kPhaseCount; ++i)
        phases_seen |= static_cast<uint32_t>(block.mean_ns[i] > 0) << i;
}

bool RankHistory::is_within_steps(int64_t begin_ns, int64_t end_ns) const {
  return end_ns > first_begin_ns && begin_ns < last_end_ns;
}

void RankHistory::add(const Occurrence& occurrence) {
  OccurrenceStats& stats = occurrences[static_cast<size_t>(occurrence.kind)];
  const int64_t took_ns = occurrence.end_ns - occurrence.begin_ns;
  ++stats.count;
  stats.total_ns += took_ns;
  if (!is_within_steps(occurrence.begin_ns, occurrence.end_ns)) outside_ns += took_ns;
  stats.recent.push_back({occurrence.step, occurrence.begin_ns, took_ns});
  if (stats.recent.size() > kMaxOccurrences) stats.recent.pop_front();
}

void RankHistory::add(const MemorySample& sample) {
  if (memory.size() >= kMaxMemory) halve(memory);
  memory.push_back(sample);
}

void RankHistory::keep(size_t max_raw, size_t max_rollups, size_t max_memory) {
  Made made;
  if (unrolled_steps < 0) unrolled_steps = count_unrolled(*this);
  trim_raw(*this, std::max<size_t>(max_raw, 1), made);
  // Fewer than ten blocks of a level would never make one of the next.
  const size_t blocks = std::max<size_t>(max_rollups, kFanIn);
  for (KeptList<StepBlock>& level : rollups)
    while (level.size() > blocks) level.pop_front();
  while (memory.size() > std::max<size_t>(max_memory, 1)) halve(memory);
}

// About 300, 900 and 120 bytes each; judging them takes as much again for a moment. The engine's window must fit
// into the raw steps, and ten blocks of a level that are not one of the next.
void RankHistory::keep_share(size_t ranks) {
  const auto share = [ranks](size_t budget, size_t least, size_t most) {
    return std::clamp(budget / std::max<size_t>(ranks, 1), least, most);
  };
  keep(share(500'000, 120, kMaxRaw), share(80'000, 20, kMaxRollups),
       share(500'000, 120, kMaxMemory));
}

std::vector<StepBlock> RankHistory::steady_blocks(Finest finest) const {
  std::vector<StepBlock> blocks;
  struct Add {
    std::vector<StepBlock>& to;
    void operator()(const StepBlock& block) const { to.push_back(block); }
    void operator()(const StepSample& step) const { to.push_back(block_of(step)); }
  };
  each_steady(finest, Add{blocks});
  return blocks;
}

}  // namespace stepscope
