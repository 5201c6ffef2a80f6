#include "report/pieces.h"

#include <algorithm>

#include "engine/joined_steps.h"

namespace stepscope::report {
namespace {

// As RankHistory::steady_blocks(): from the coarsest level down, a block only where its first child was trimmed.
// finer_from(rank, level): where the next finer level begins.
int64_t finer_from(const RankHistory& rank, size_t level) {
  if (level > 0)
    return rank.rollups[level - 1].empty() ? INT64_MAX : rank.rollups[level - 1].front().begin_ns;
  return rank.raw.empty() ? INT64_MAX : rank.raw.front().begin_ns;
}

std::vector<Piece> collect(const RankHistory& rank, int64_t offset) {
  std::vector<Piece> pieces;
  pieces.reserve(rank.raw.size());
  int64_t covered_ns = INT64_MIN;
  for (size_t level = rank.rollups.size(); level-- > 0;) {
    const int64_t finer_from_ns = finer_from(rank, level);
    for (const StepBlock& block : rank.rollups[level]) {
      if (block.begin_ns < covered_ns) continue;
      if (block.begin_ns >= finer_from_ns) break;
      covered_ns = block.end_ns;
      pieces.push_back({nullptr, &block, block.first_step + offset, block.last_step + offset});
    }
  }
  for (const StepSample& s : rank.raw)
    if (s.begin_ns >= covered_ns && is_timed(s))
      pieces.push_back({&s, nullptr, s.step + offset, s.step + offset});
  // Where the newest process began. A block that holds steps of two is of neither.
  size_t begin = pieces.size();
  while (begin > 0 && pieces[begin - 1].first_step <= pieces[begin - 1].last_step &&
         (begin == pieces.size() || pieces[begin - 1].last_step < pieces[begin].first_step))
    --begin;
  pieces.erase(pieces.begin(), pieces.begin() + static_cast<std::ptrdiff_t>(begin));
  return pieces;
}

// First and last step of what collect() would give, from the ends alone. None: that takes a walk.
std::optional<StepRange> ends_of(const RankHistory& rank) {
  if (rank.raw.empty()) return std::nullopt;
  // Numbered from 0 without a gap, so by one process.
  if (rank.raw.back().step + 1 != rank.steps + rank.failed_steps) return std::nullopt;
  const StepSample& oldest = rank.raw.front();
  const StepSample& newest = rank.raw.back();
  if (!is_timed(oldest) || !is_timed(newest)) return std::nullopt;
  if (!rank.rollups.empty() && !rank.rollups[0].empty()) {
    const StepBlock& block = rank.rollups[0].back();
    if (block.begin_ns < oldest.begin_ns && newest.begin_ns < block.end_ns) return std::nullopt;
  }
  for (size_t level = rank.rollups.size(); level-- > 0;)
    if (!rank.rollups[level].empty() &&
        rank.rollups[level].front().begin_ns < finer_from(rank, level))
      return StepRange{rank.rollups[level].front().first_step, newest.step};
  return StepRange{oldest.step, newest.step};
}

}  // namespace

Pieces::Pieces(const RunHistory& run)
    : run_(run), offsets_(engine::step_offsets(run)), kept_(run.ranks.size()) {}

std::optional<StepRange> Pieces::steps_of(size_t position) {
  if (const auto ends = ends_of(run_.ranks[position]))
    return StepRange{ends->from + offsets_[position], ends->to + offsets_[position]};
  const auto pieces = of(position);
  if (pieces.empty()) return std::nullopt;
  return StepRange{pieces.front().first_step, pieces.back().last_step};
}

const StepRange& Pieces::all() {
  if (all_) return *all_;
  all_ = StepRange{0, -1};
  for (size_t i = 0; i < run_.ranks.size(); ++i) {
    const auto steps = steps_of(i);
    if (!steps) continue;
    const bool first = all_->to < all_->from;
    all_->from = first ? steps->from : std::min(all_->from, steps->from);
    all_->to = first ? steps->to : std::max(all_->to, steps->to);
  }
  return *all_;
}

std::span<const Piece> Pieces::of(size_t position, const StepRange& range) {
  auto& kept = kept_[position];
  if (!kept) kept = collect(run_.ranks[position], offsets_[position]);
  const auto begin = std::partition_point(
      kept->begin(), kept->end(), [&](const Piece& piece) { return piece.last_step < range.from; });
  const auto end = std::partition_point(
      begin, kept->end(), [&](const Piece& piece) { return piece.first_step <= range.to; });
  return {begin, end};
}

}  // namespace stepscope::report
