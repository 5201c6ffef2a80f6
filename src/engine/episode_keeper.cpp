#include "engine/episode_keeper.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "engine/median.h"
#include "engine/slow_cause.h"
#include "engine/what_if.h"

namespace stepscope::engine {
namespace {

constexpr size_t kManyRanks = 4096;    // from here on windows are looked at every fourth step
constexpr int64_t kBelowFor = 6;       // steps: an episode ends when it looks healthy for that long
constexpr int64_t kExplainEvery = 16;  // steps, while an episode grows
constexpr int64_t kExplainSteps = 64;

std::vector<std::pair<int32_t, int32_t>> ranges_of(const RunHistory& run,
                                                   const std::vector<int32_t>& positions) {
  std::vector<std::pair<int32_t, int32_t>> out;
  for (const int32_t position : positions) {
    const int32_t rank = run.ranks[static_cast<size_t>(position)].rank;
    if (!out.empty() && out.back().second + 1 == rank)
      out.back().second = rank;
    else if (out.size() < Episode::kMaxRanges)
      out.emplace_back(rank, rank);
  }
  return out;
}

}  // namespace

std::vector<int32_t> positions_of(const RunHistory& run, const Episode& episode) {
  std::vector<int32_t> out;
  for (const auto& [from, to] : episode.members) {
    auto at = std::lower_bound(run.ranks.begin(), run.ranks.end(), from,
                               [](const RankHistory& r, int32_t rank) { return r.rank < rank; });
    for (; at != run.ranks.end() && at->rank <= to; ++at)
      out.push_back(static_cast<int32_t>(at - run.ranks.begin()));
  }
  return out;
}

EpisodeKeeper::EpisodeKeeper(const RunHistory& run, const StepJoiner& joiner,
                             const WorkWindow& window, Comparison& comparison)
    : run_(run), joiner_(joiner), window_(window), comparison_(comparison) {
  std::map<std::string, int32_t> index;
  for (size_t i = 0; i < run.ranks.size(); ++i) {
    const auto [at, fresh] = index.emplace(run.ranks[i].node, static_cast<int32_t>(nodes_.size()));
    if (fresh) nodes_.push_back({run.ranks[i].node, {}});
    node_of_.push_back(at->second);
    nodes_[static_cast<size_t>(at->second)].ranks.push_back(static_cast<int32_t>(i));
  }
  own_again();
}

void EpisodeKeeper::own_again() {
  owner_.assign(run_.ranks.size(), -1);
  for (size_t e = 0; e < comparison_.episodes.size(); ++e)
    if (!comparison_.episodes[e].ended)
      for (const int32_t r : positions_of(run_, comparison_.episodes[e]))
        owner_[static_cast<size_t>(r)] = static_cast<int32_t>(e);
}

size_t EpisodeKeeper::index_from(int64_t step) const {
  size_t i = 0;
  while (i < window_.size() && window_.step(i).step < step) ++i;
  return i;
}

int64_t EpisodeKeeper::stride() const { return run_.ranks.size() <= kManyRanks ? 1 : kMostStride; }

bool EpisodeKeeper::due(int64_t ordinal) const {
  const int32_t ranks = window_.step(window_.size() - 1).ranks;
  if (ranks < 2 || window_.size() < shortest_window(run_.settings, ranks)) return false;
  return ordinal % stride() == 0;
}

void EpisodeKeeper::replay(int64_t ordinal) {
  if (due(ordinal))
    keep_fastest(
        medians(window_, shortest_window(run_.settings, window_.step(window_.size() - 1).ranks)));
}

// A rank of an open episode is none to compare with: of two ranks the slow one is the fastest again once it is mended.
void EpisodeKeeper::keep_fastest(const WindowMedians& medians) {
  const auto is_free = [&](int32_t r) { return owner_[static_cast<size_t>(r)] < 0; };
  fastest_.clear();
  std::copy_if(medians.fastest.begin(), medians.fastest.end(), std::back_inserter(fastest_),
               is_free);
  if (!fastest_.empty()) return;
  for (size_t r = 0; r < owner_.size(); ++r)
    if (medians.work[r] != kAbsent && is_free(static_cast<int32_t>(r)))
      fastest_.push_back(static_cast<int32_t>(r));
}

void EpisodeKeeper::step() {
  if (due(comparison_.steps)) judge();
  account();
}

void EpisodeKeeper::judge() {
  SlowSet slow = find_slow(window_, run_.settings, owner_);
  keep_fastest(slow.shortest);
  follow(slow.shortest);
  if (!slow.firm.empty()) open(slow);
}

double EpisodeKeeper::delta_of(const Episode& episode, const WindowMedians& medians) const {
  std::vector<double> deltas;
  for (const int32_t r : positions_of(run_, episode))
    if (medians.work[static_cast<size_t>(r)] != kAbsent)
      deltas.push_back(medians.delta(static_cast<size_t>(r)));
  return median(std::move(deltas));  // 0: all of them left
}

// The median over the ranks of their work, less that of the fastest, a value a step.
std::vector<double> EpisodeKeeper::above_fastest(const std::vector<int32_t>& positions,
                                                 size_t from) const {
  // While one episode ends and the next has begun, all ranks may be in one: then those that are not in this one.
  std::vector<int32_t> others;
  if (fastest_.empty())
    for (int32_t r = 0; r < static_cast<int32_t>(run_.ranks.size()); ++r)
      if (std::find(positions.begin(), positions.end(), r) == positions.end()) others.push_back(r);
  const std::vector<int32_t>& reference = others.empty() ? fastest_ : others;
  std::vector<double> out;
  for (size_t i = from; i < window_.size(); ++i) {
    const double own = median_work(window_.step(i).work, positions);
    const double fastest = median_work(window_.step(i).work, reference);
    out.push_back(own == kAbsent || fastest == kAbsent ? 0 : own - fastest);
  }
  return out;
}

void EpisodeKeeper::follow(const WindowMedians& medians) {
  bool any_ended = false;
  for (Episode& episode : comparison_.episodes) {
    if (episode.ended) continue;
    const double delta = delta_of(episode, medians);
    if (delta >= episode.opening_delta / 2) {
      episode.below_for = 0;
      continue;
    }
    episode.below_for += stride();
    if (episode.below_for < kBelowFor) continue;  // noise, until it lasts
    const size_t from = index_from(std::max(episode.first_step, window_.step(0).step));
    std::vector<double> above = above_fastest(positions_of(run_, episode), from);
    std::reverse(above.begin(), above.end());
    const size_t healthy = change_up(above, episode.excess_ns);
    const size_t last = window_.size() - 1 - std::min(healthy, window_.size() - 1 - from);
    end(episode, window_.step(last).step);
    any_ended = true;
  }
  if (!any_ended) return;
  // No median of the shortest window is moved by fewer steps than half of it: that was noise.
  const auto least = static_cast<int64_t>(medians.steps / 2);
  std::erase_if(comparison_.episodes, [&](const Episode& e) {
    return e.ended && e.last_step - e.first_step + 1 < least && e.last_step >= window_.step(0).step;
  });
  own_again();
}

// What was counted after last_step is taken back.
void EpisodeKeeper::end(Episode& episode, int64_t last_step) {
  const auto index = static_cast<size_t>(&episode - comparison_.episodes.data());
  // The newest step of the window is not accounted for yet.
  for (size_t i = index_from(last_step + 1); i + 1 < window_.size(); ++i)
    count(episode, index, i, -1);
  episode.saved_ns = std::max(0.0, episode.saved_ns);
  episode.saved_by_all_ns = std::max(episode.saved_ns, episode.saved_by_all_ns);
  episode.last_step = last_step;
  episode.ended = true;
  explain(episode);
}

void EpisodeKeeper::end_all() {
  for (Episode& episode : comparison_.episodes) episode.ended = true;
  own_again();
}

void EpisodeKeeper::count(Episode& episode, size_t index, size_t step, int sign) {
  const Savings savings =
      what_if(window_.step(step), owner_, comparison_.episodes.size(), fastest_);
  episode.steps += sign;
  episode.time_ns += sign * window_.step(step).time_ns;
  episode.saved_ns += sign * savings.alone[index];
  episode.saved_by_all_ns += sign * savings.all;
}

void EpisodeKeeper::account() {
  const size_t newest = window_.size() - 1;
  const int64_t step = window_.step(newest).step;
  std::optional<Savings> savings;
  for (size_t e = 0; e < comparison_.episodes.size(); ++e) {
    Episode& episode = comparison_.episodes[e];
    if (episode.ended || episode.last_step >= step) continue;
    if (!savings)
      savings = what_if(window_.step(newest), owner_, comparison_.episodes.size(), fastest_);
    episode.last_step = step;
    episode.steps += 1;
    episode.time_ns += window_.step(newest).time_ns;
    episode.saved_ns += savings->alone[e];
    episode.saved_by_all_ns += savings->all;
    if ((comparison_.steps - episode.opened_at) % kExplainEvery == 0) explain(episode);
  }
}

// How much longer, over the episode's own steps: the windows also hold steps before it and after.
void EpisodeKeeper::measure(Episode& episode, const std::vector<int32_t>& slow, int64_t from) {
  const size_t first = index_from(from), end = index_from(episode.last_step + 1);
  std::vector<double> above = above_fastest(slow, first), time;
  above.resize(end > first ? end - first : 0);
  for (size_t i = first; i < end; ++i) time.push_back(window_.step(i).time_ns);
  const double excess = median(std::move(above)), step = median(std::move(time));
  if (excess <= 0 || step <= 0) return;
  episode.excess_ns = excess;
  episode.delta = excess / step;
}

void EpisodeKeeper::explain(Episode& episode) {
  const std::vector<int32_t> slow = positions_of(run_, episode);
  const int64_t from = std::max(episode.first_step, episode.last_step - kExplainSteps);
  measure(episode, slow, from);
  SlowCause cause =
      explain_slow(joiner_, slow, fastest_, {from, episode.last_step}, episode.excess_ns);
  episode.phases = std::move(cause.phases);
  episode.samples_ratio = cause.samples_ratio;
}

void EpisodeKeeper::open(const SlowSet& slow) {
  std::vector<char> is_slow(run_.ranks.size(), 0);
  for (size_t r = 0; r < owner_.size(); ++r) is_slow[r] = owner_[r] >= 0;
  for (const auto* some : {&slow.firm, &slow.likely})
    for (const int32_t r : *some) is_slow[static_cast<size_t>(r)] = 1;
  open_nodes(slow, is_slow);

  std::vector<int32_t> fresh, all;
  for (const int32_t r : slow.firm)
    if (is_slow[static_cast<size_t>(r)] == 1 && owner_[static_cast<size_t>(r)] < 0)
      fresh.push_back(r);
  if (fresh.empty()) return;
  for (size_t r = 0; r < is_slow.size(); ++r)
    if (is_slow[r] == 1) all.push_back(static_cast<int32_t>(r));
  // Everybody is no group: one is about to end while the other begins.
  const auto present = static_cast<size_t>(slow.shortest.ranks);
  if (all.size() > std::max<size_t>(1, present / 4) && all.size() < present) {
    const auto same =
        std::find_if(comparison_.episodes.begin(), comparison_.episodes.end(),
                     [](const Episode& e) { return !e.ended && e.pattern == "groups"; });
    if (same != comparison_.episodes.end()) {  // more of its ranks showed
      same->members = ranges_of(run_, all);
      return own_again();
    }
    Episode group;
    group.code = "IMBALANCE";
    group.pattern = "groups";
    group.scope = Scope::kJob;
    open_one(std::move(group), all, slow.shortest);
    return;
  }
  for (const int32_t r : fresh) {
    Episode one;
    one.code = "STRAGGLER";
    one.pattern = "persistent";
    one.scope = Scope::kRank;
    one.rank = run_.ranks[static_cast<size_t>(r)].rank;
    one.node = run_.ranks[static_cast<size_t>(r)].node;
    open_one(std::move(one), {r}, slow.shortest);
  }
}

// A node's ranks are marked 2: what is left at 1 is judged rank by rank.
void EpisodeKeeper::open_nodes(const SlowSet& slow, std::vector<char>& is_slow) {
  if (nodes_.size() < 2) return;
  std::vector<size_t> marked;
  size_t inside_slow = 0, all_slow = 0, inside = 0, present = 0;
  for (const char one : is_slow) all_slow += one != 0;
  for (size_t n = 0; n < nodes_.size(); ++n) {
    size_t count = 0, ranks = 0;
    for (const int32_t r : nodes_[n].ranks) {
      ranks += slow.shortest.work[static_cast<size_t>(r)] != kAbsent;
      count += is_slow[static_cast<size_t>(r)] != 0;
    }
    present += ranks;
    if (ranks < 2 ||
        static_cast<double>(count) <= run_.settings.node_ranks * static_cast<double>(ranks))
      continue;
    marked.push_back(n);
    inside += ranks;
    inside_slow += count;
  }
  const size_t others = present - std::min(present, inside);
  if (marked.empty() || marked.size() > std::max<size_t>(1, nodes_.size() / 4) ||
      static_cast<double>(all_slow - inside_slow) >
          run_.settings.node_others * static_cast<double>(others))
    return;
  for (const size_t n : marked) {
    const Node& node = nodes_[n];
    const bool fresh = std::any_of(slow.firm.begin(), slow.firm.end(), [&](int32_t r) {
      return node_of_[static_cast<size_t>(r)] == static_cast<int32_t>(n);
    });
    for (const int32_t r : node.ranks) is_slow[static_cast<size_t>(r)] = 2;
    if (!fresh) continue;
    Episode episode;
    episode.code = "STRAGGLER";
    episode.pattern = "persistent";
    episode.scope = Scope::kNode;
    episode.node = node.name;
    open_one(std::move(episode), node.ranks, slow.shortest);
  }
}

void EpisodeKeeper::open_one(Episode episode, const std::vector<int32_t>& positions,
                             const WindowMedians& now) {
  const int64_t step = window_.step(window_.size() - 1).step;
  episode.members = ranges_of(run_, positions);
  episode.opened_step = episode.last_step = step;
  episode.opened_at = comparison_.steps;
  episode.opening_delta = episode.delta = delta_of(episode, now);
  episode.excess_ns = episode.delta * now.time_ns;
  // Not before the end of its last one: that may have been larger.
  size_t from = 0;
  for (const Episode& e : comparison_.episodes)
    if (e.ended && e.scope == episode.scope && e.rank == episode.rank && e.node == episode.node)
      from = std::max(from, std::min(index_from(e.last_step + 1), window_.size() - 1));
  const size_t first = from + change_up(above_fastest(positions, from), episode.excess_ns);
  episode.first_step = window_.step(first).step;
  take_in(positions, episode.first_step, now.steps);
  if (resume(episode, now.steps)) return;
  comparison_.episodes.push_back(std::move(episode));
  drop_cheapest();
  own_again();
  Episode& opened = comparison_.episodes.back();
  for (size_t i = index_from(opened.first_step); i < window_.size(); ++i)
    count(opened, comparison_.episodes.size() - 1, i, 1);
  explain(opened);
}

// The same fault again, before a window passed without it: one episode.
bool EpisodeKeeper::resume(const Episode& again, size_t within) {
  const auto old =
      std::find_if(comparison_.episodes.begin(), comparison_.episodes.end(), [&](const Episode& e) {
        return e.ended && e.scope == again.scope && e.pattern == again.pattern &&
               e.rank == again.rank && e.node == again.node && e.opened_at <= again.opened_at &&
               e.last_step >= again.first_step - static_cast<int64_t>(within);
      });
  if (old == comparison_.episodes.end()) return false;
  const int64_t counted_to = old->last_step;
  old->ended = false;
  old->members = again.members;
  old->below_for = 0;
  old->opening_delta = std::min(old->opening_delta, again.opening_delta);
  old->delta = again.delta;
  old->excess_ns = again.excess_ns;
  old->first_step = std::min(old->first_step, again.first_step);
  old->last_step = again.last_step;
  own_again();
  const auto index = static_cast<size_t>(old - comparison_.episodes.begin());
  for (size_t i = index_from(counted_to + 1); i < window_.size(); ++i) count(*old, index, i, 1);
  explain(*old);
  return true;
}

void EpisodeKeeper::take_in(const std::vector<int32_t>& positions, int64_t first_step,
                            size_t within) {
  for (size_t e = comparison_.episodes.size(); e-- > 0;) {
    Episode& old = comparison_.episodes[e];
    if (old.ended) continue;
    const bool inside = std::any_of(positions.begin(), positions.end(), [&](int32_t r) {
      return owner_[static_cast<size_t>(r)] == static_cast<int32_t>(e);
    });
    if (!inside) continue;
    if (old.first_step + static_cast<int64_t>(within) < first_step) {
      end(old, first_step - 1);
      continue;
    }
    comparison_.episodes.erase(comparison_.episodes.begin() + static_cast<std::ptrdiff_t>(e));
    own_again();
  }
}

// Of too many the ended one that cost least goes; where none ended, the open one that costs least.
void EpisodeKeeper::drop_cheapest() {
  auto& episodes = comparison_.episodes;
  while (episodes.size() > Comparison::kMaxEpisodes) {
    const auto cheapest = std::min_element(
        episodes.begin(), episodes.end() - 1, [](const Episode& a, const Episode& b) {
          return std::pair(!a.ended, a.saved_ns) < std::pair(!b.ended, b.saved_ns);
        });
    episodes.erase(cheapest);
  }
}

}  // namespace stepscope::engine
