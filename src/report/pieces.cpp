#include "report/pieces.h"

#include <algorithm>

#include "engine/joined_steps.h"

namespace stepscope::report {

Pieces::Pieces(const RunHistory& run) : run_(run), offsets_(engine::step_offsets(run)) {
  for (size_t i = 0; i < run.ranks.size(); ++i) {
    collect(run.ranks[i], offsets_[i]);
    if (pieces_.empty()) continue;
    const bool first = all_.to < all_.from;
    all_.from =
        first ? pieces_.front().first_step : std::min(all_.from, pieces_.front().first_step);
    all_.to = first ? pieces_.back().last_step : std::max(all_.to, pieces_.back().last_step);
  }
}

// As RankHistory::steady_blocks(): from the coarsest level down, a block only where its first child was trimmed.
void Pieces::collect(const RankHistory& rank, int64_t offset) {
  pieces_.clear();
  int64_t covered_ns = INT64_MIN;
  for (size_t level = rank.rollups.size(); level-- > 0;) {
    int64_t finer_from_ns = INT64_MAX;
    if (level > 0 && !rank.rollups[level - 1].empty())
      finer_from_ns = rank.rollups[level - 1].front().begin_ns;
    if (level == 0 && !rank.raw.empty()) finer_from_ns = rank.raw.front().begin_ns;
    for (const StepBlock& block : rank.rollups[level]) {
      if (block.begin_ns < covered_ns) continue;
      if (block.begin_ns >= finer_from_ns) break;
      covered_ns = block.end_ns;
      pieces_.push_back({nullptr, &block, block.first_step + offset, block.last_step + offset});
    }
  }
  for (const StepSample& s : rank.raw)
    if (s.begin_ns >= covered_ns && is_timed(s))
      pieces_.push_back({&s, nullptr, s.step + offset, s.step + offset});
  // Where the newest process began. A block that holds steps of two is of neither.
  size_t begin = pieces_.size();
  while (begin > 0 && pieces_[begin - 1].first_step <= pieces_[begin - 1].last_step &&
         (begin == pieces_.size() || pieces_[begin - 1].last_step < pieces_[begin].first_step))
    --begin;
  pieces_.erase(pieces_.begin(), pieces_.begin() + static_cast<std::ptrdiff_t>(begin));
}

const std::vector<Piece>& Pieces::of(size_t position, const StepRange& range) {
  collect(run_.ranks[position], offsets_[position]);
  std::erase_if(pieces_, [&](const Piece& piece) {
    return piece.last_step < range.from || piece.first_step > range.to;
  });
  return pieces_;
}

}  // namespace stepscope::report
