#include "hub/job.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "hub/convert.h"
#include "hub/protocol.h"
#include "model/facts.h"

namespace stepscope::hub {
namespace {

constexpr size_t kMaxRanksOfUpdate = 4096;
constexpr size_t kMaxRunNotices = 64;
constexpr int64_t kSilentNs = 5'000'000'000;   // a lost node's ranks may be taken by another then
constexpr int64_t kStepless = 30'000'000'000;  // so may those that make no step for so long
int64_t counted(const pb::Totals& totals) { return totals.steps() + totals.failed_steps(); }

// Of this node's history of the rank. A rank that came to the node later has its earlier steps in base.
int64_t lost_of(const pb::StoredRank& rank) {
  return rank.lost() + std::max<int64_t>(counted(rank.last()) - rank.received(), 0);
}

bool is_newer(const pb::Step& step, const pb::StoredRank& than) {
  if (than.begin_ns() == 0) return true;
  return step.begin_ns() > than.begin_ns() ||
         (step.begin_ns() == than.begin_ns() && step.step() > than.step());
}

void add_once(std::vector<std::string>& list, const std::string& text, size_t most) {
  if (list.size() < most && std::find(list.begin(), list.end(), text) == list.end())
    list.push_back(text);
}

}  // namespace

Job::Job(RunHistory run, const std::vector<std::string>& stored, int64_t now_ns)
    : run_(std::move(run)) {
  own_notices_.clear();
  for (const std::string& piece : stored) {
    Node node;
    if (!node.stored.ParseFromString(piece) || nodes_.size() >= run_.nodes.size()) break;
    const size_t number = nodes_.size();
    for (const pb::StoredRank& rank : node.stored.ranks()) {
      node.ranks[rank.rank()] = rank;
      if (rank.owner()) owners_[rank.rank()] = number;
    }
    node.stored.clear_ranks();
    node.gone_ns = node.ended_ns = now_ns;
    by_instance_[node.stored.instance()] = number;
    nodes_.push_back(std::move(node));
  }
  run_.nodes.resize(nodes_.size());
  for (RankHistory& rank : run_.ranks) {
    const auto owner = owners_.find(rank.rank);
    if (owner == owners_.end()) continue;
    const pb::StoredRank& known = nodes_[owner->second].ranks[rank.rank];
    take_totals(known.base(), known.last(), known.shift_ns(), rank);  // not all of it is in run.db
  }
}

Result<size_t> Job::join(const pb::Join& join, int64_t now_ns) {
  const auto known = by_instance_.find(join.instance());
  if (known != by_instance_.end()) {
    Node& node = nodes_[known->second];
    ++node.connections;
    node.given_up = false;
    node.stored.set_ended(false);
    node.gone_ns = now_ns;
    return known->second;
  }
  if (nodes_.size() >= kMaxNodes)
    return Error{"the run has " + std::to_string(kMaxNodes) + " nodes already", ""};
  Node node;
  node.stored.set_name(short_text(join.node(), kMaxName));
  node.stored.set_instance(join.instance());
  size_t same = 1;  // two containers may have one host name
  for (const Node& other : nodes_)
    if (other.stored.name() == node.stored.name()) ++same;
  node.stored.set_shown(node.stored.name() + (same > 1 ? "#" + std::to_string(same) : ""));
  node.connections = 1;
  node.gone_ns = now_ns;
  const size_t number = nodes_.size();
  by_instance_[join.instance()] = number;
  nodes_.push_back(std::move(node));
  run_.nodes.emplace_back().node = nodes_.back().stored.shown();
  return number;
}

pb::Have Job::have(size_t number) const {
  pb::Have have;
  for (const auto& [rank, stored] : nodes_[number].ranks) {
    pb::Have::Rank& out = *have.add_ranks();
    out.set_rank(rank);
    out.set_begin_ns(stored.begin_ns());
    out.set_step(stored.step());
    out.set_memory_ns(stored.memory_ns());
  }
  return have;
}

RankHistory& Job::history_of(int32_t rank) {
  auto at = std::lower_bound(run_.ranks.begin(), run_.ranks.end(), rank,
                             [](const RankHistory& r, int32_t number) { return r.rank < number; });
  if (at != run_.ranks.end() && at->rank == rank) return *at;
  at = run_.ranks.insert(at, RankHistory{});
  at->rank = rank;
  return *at;
}

bool Job::may_take(int32_t rank, size_t number, const pb::RankUpdate& update,
                   int64_t now_ns) const {
  const auto owner = owners_.find(rank);
  if (owner == owners_.end() || owner->second == number) return true;
  const Node& node = nodes_[owner->second];
  if (node.stored.ended() || node.given_up) return true;
  if (node.connections == 0 && now_ns - node.gone_ns > kSilentNs) return true;
  const pb::StoredRank& theirs = node.ranks.at(rank);
  if (update.identity().attempt() > theirs.attempt()) return true;
  const auto history =
      std::lower_bound(run_.ranks.begin(), run_.ranks.end(), rank,
                       [](const RankHistory& r, int32_t wanted) { return r.rank < wanted; });
  if (history == run_.ranks.end() || history->rank != rank) return true;
  if ((history->facts & kFactClosed) != 0) return true;
  if (history->doing && !history->doing->alive) return true;
  const auto heard = node.heard_ns.find(rank);
  return update.steps_size() > 0 && heard != node.heard_ns.end() &&
         now_ns - heard->second > kStepless;
}

// Everything of before becomes the base on which this node's figures stand.
void Job::take_over(int32_t rank, size_t number, RankHistory& history) {
  const auto owner = owners_.find(rank);
  if (owner != owners_.end() && owner->second == number) return;
  pb::StoredRank& ours = nodes_[number].ranks[rank];
  ours.set_rank(rank);
  if (owner != owners_.end()) {
    nodes_[owner->second].ranks[rank].set_owner(false);
    ours.mutable_base()->Clear();
    fill_totals(history, *ours.mutable_base());
    subtract(ours.last(), *ours.mutable_base());  // it had the rank before, and counts that itself
    ours.set_fresh(true);
    ours.set_attempt_shift(std::max(0, history.attempt + 1 - ours.attempt()));
  }
  ours.set_owner(true);
  owners_[rank] = number;
}

int64_t Job::shift_for(pb::StoredRank& stored, int64_t begin_ns, const RankHistory& history) const {
  if (stored.fresh() && begin_ns + stored.shift_ns() < history.last_end_ns)
    stored.set_shift_ns(history.last_end_ns - begin_ns);
  stored.set_fresh(false);
  return stored.shift_ns();
}

Status Job::take_steps(pb::StoredRank& stored, const pb::RankUpdate& update, RankHistory& history) {
  for (const pb::Step& sent : update.steps()) {
    if (!is_newer(sent, stored)) continue;
    auto step = step_of(sent);
    if (!step)
      return Error{"a step of rank " + std::to_string(stored.rank()) + " cannot be true", ""};
    const int64_t shift_ns = shift_for(stored, sent.begin_ns(), history);
    step->rank = stored.rank();
    step->begin_ns += shift_ns;
    step->end_ns += shift_ns;
    for (SyncPoint& sync : step->syncs) {
      sync.ready_ns += shift_ns;
      sync.leave_ns += shift_ns;
    }
    history.add(std::move(*step), run_.settings);
    stored.set_begin_ns(sent.begin_ns());
    stored.set_step(sent.step());
    stored.set_received(stored.received() + 1);
  }
  for (const pb::Memory& sent : update.memory()) {
    if (sent.mono_ns() <= stored.memory_ns()) continue;
    auto sample = memory_of(sent);
    if (!sample)
      return Error{"a memory sample of rank " + std::to_string(stored.rank()) + " cannot be true",
                   ""};
    sample->mono_ns += stored.shift_ns();
    history.add(*sample);
    stored.set_memory_ns(sent.mono_ns());
  }
  return ok();
}

Status Job::take_rank(size_t number, const pb::RankUpdate& update, int64_t now_ns, Taken& taken) {
  const int32_t rank = update.rank();
  if (rank < 0 || rank >= kMaxRank) return Error{"rank " + std::to_string(rank) + " is none", ""};
  if (run_.ranks.size() >= kMaxRanks && !owners_.contains(rank))
    return Error{"more than " + std::to_string(kMaxRanks) + " ranks", ""};
  Node& node = nodes_[number];
  if (!may_take(rank, number, update, now_ns)) {
    if (!std::exchange(node.declined[rank], true))
      note("rank " + std::to_string(rank) + " is reported by node " +
           nodes_[owners_[rank]].stored.shown() + " and by node " + node.stored.shown() +
           " at the same time: the second is left out");
    return ok();
  }
  RankHistory& history = history_of(rank);
  const bool again = node.declined.erase(rank) > 0;
  node.ranks[rank].set_attempt(std::clamp(update.identity().attempt(), 0, 1 << 20));
  take_over(rank, number, history);
  pb::StoredRank& stored = node.ranks[rank];
  if (again) {  // what it sent meanwhile was not taken
    taken.send_again = true;
    return ok();
  }
  const int64_t first_ns = update.identity().first_begin_ns();
  // A history that began after all that we have of this node: its agent lost its own.
  if (stored.received() > 0 && first_ns > stored.begin_ns()) {
    stored.set_lost(lost_of(stored));
    RankHistory sum;
    take_totals(stored.base(), stored.last(), stored.shift_ns(), sum);
    stored.mutable_base()->Clear();
    fill_totals(sum, *stored.mutable_base());
    stored.mutable_last()->Clear();
    stored.set_received(0);
  }
  if (update.steps_size() > 0) node.heard_ns[rank] = now_ns;
  if (const Status taken_steps = take_steps(stored, update, history); !taken_steps)
    return taken_steps;
  take_identity(update.identity(), history);
  history.attempt = stored.attempt_shift() + stored.attempt();
  history.node = node.stored.shown();
  if (update.has_totals()) {
    *stored.mutable_last() = update.totals();
    take_totals(stored.base(), stored.last(), stored.shift_ns(), history);
  }
  if (counted(stored.base()) == 0 && first_ns > 0 && first_ns <= kMaxNs &&
      (history.first_begin_ns == 0 || first_ns < history.first_begin_ns))
    history.first_begin_ns = first_ns;
  history.doing = update.has_doing() ? doing_of(update.doing()) : std::nullopt;
  history.keep_share(run_.ranks.size());
  return ok();
}

Result<Job::Taken> Job::update(size_t number, const pb::Update& update, int64_t now_ns) {
  Taken taken;
  Node& node = nodes_[number];
  node.gone_ns = now_ns;
  if (static_cast<size_t>(update.ranks_size()) > kMaxRanksOfUpdate ||
      node.ranks.size() > kMaxRanksOfUpdate)
    return Error{"too many ranks for one node", ""};
  for (const pb::RankUpdate& rank : update.ranks())
    if (const Status done = take_rank(number, rank, now_ns, taken); !done) return done.error();
  if (!update.has_node()) return taken;
  take_node(update.node(), run_.nodes[number]);
  node.stored.clear_notices();
  node.stored.clear_unobserved();
  for (const std::string& text : update.node().notices())
    if (node.stored.notices_size() < static_cast<int>(kMaxNotices))
      node.stored.add_notices(short_text(text, kMaxText));
  for (const std::string& text : update.node().unobserved())
    if (node.stored.unobserved_size() < static_cast<int>(kMaxNotices))
      node.stored.add_unobserved(short_text(text, kMaxText));
  node.stored.set_duration_ns(std::clamp<int64_t>(update.node().duration_ns(), 0, kMaxNs));
  return taken;
}

void Job::goodbye(size_t number, const pb::Goodbye& goodbye, int64_t now_ns) {
  Node& node = nodes_[number];
  node.stored.set_ended(true);
  node.ended_ns = now_ns;
  if (goodbye.has_exit_code() && goodbye.exit_code() >= 0 && goodbye.exit_code() <= 255)
    node.stored.set_exit_code(goodbye.exit_code());
  else
    node.stored.clear_exit_code();
}

void Job::lost(size_t number, int64_t now_ns) {
  Node& node = nodes_[number];
  if (node.connections > 0) --node.connections;
  node.gone_ns = now_ns;
}

size_t Job::connected_count() const {
  return static_cast<size_t>(std::count_if(nodes_.begin(), nodes_.end(),
                                           [](const Node& node) { return node.connections > 0; }));
}

bool Job::has_lowest_rank(size_t number) const {
  return !owners_.empty() && owners_.begin()->second == number;
}

int64_t Job::lost_steps() const {
  int64_t lost = 0;
  for (const Node& node : nodes_)
    for (const auto& [rank, stored] : node.ranks) lost += lost_of(stored);
  return lost;
}

bool Job::is_over(int64_t now_ns) const {
  if (nodes_.empty()) return false;
  int64_t last_ns = 0;
  for (const Node& node : nodes_) {
    const bool vanished = node.connections == 0 && now_ns - node.gone_ns > kVanishedNs;
    if (!node.stored.ended() && !vanished) return false;
    last_ns = std::max({last_ns, node.ended_ns, node.gone_ns});
  }
  int32_t expected = 1;
  for (const RankHistory& rank : run_.ranks) expected = std::max(expected, rank.world_size);
  return run_.ranks.size() >= static_cast<size_t>(expected) || now_ns - last_ns > kUnseenGraceNs;
}

std::vector<std::string> Job::unended_nodes() const {
  std::vector<std::string> names;
  for (const Node& node : nodes_)
    if (!node.stored.ended()) names.push_back(node.stored.shown());
  return names;
}

void Job::note(const std::string& notice) { add_once(own_notices_, notice, kMaxRunNotices); }

void Job::refresh(int64_t now_ns) {
  run_.notices = own_notices_;
  run_.unobserved.clear();
  std::map<int32_t, const Node*> by_rank;  // by lowest rank: whose exit code is the run's
  for (size_t i = 0; i < nodes_.size(); ++i) {
    Node& node = nodes_[i];
    const std::string prefix = nodes_.size() > 1 ? node.stored.shown() + ": " : "";
    for (const std::string& text : node.stored.notices())
      add_once(run_.notices, prefix + text, kMaxRunNotices);
    for (const std::string& text : node.stored.unobserved())
      add_once(run_.unobserved, prefix + text, kMaxRunNotices);
    run_.duration_ns = std::max(run_.duration_ns, node.stored.duration_ns());
    const bool silent = node.connections == 0 && now_ns - node.gone_ns > kSilentNs;
    node.given_up =
        !node.stored.ended() && node.connections == 0 && now_ns - node.gone_ns > kVanishedNs;
    if (node.given_up)
      add_once(run_.notices,
               "node " + node.stored.shown() +
                   " vanished without a goodbye: what it sent until then is here",
               kMaxRunNotices);
    int64_t lost = 0;
    for (const auto& [rank, stored] : node.ranks) lost += lost_of(stored);
    if (lost > 0)
      add_once(run_.notices,
               std::to_string(lost) + " steps of node " + node.stored.shown() +
                   " did not reach the hub: they are counted, and in no average",
               kMaxRunNotices);
    if (!node.ranks.empty()) by_rank[node.ranks.begin()->first] = &node;
    if (!silent && !node.stored.ended()) continue;
    for (const auto& [rank, stored] : node.ranks)
      if (stored.owner()) history_of(rank).doing.reset();
  }
  run_.exit_code.reset();
  bool all_told = !by_rank.empty();
  for (const auto& [rank, node] : by_rank) {
    const bool told = node->stored.ended() && node->stored.has_exit_code();
    all_told = all_told && told;
    if (!told || node->stored.exit_code() == 0) continue;
    run_.exit_code = node->stored.exit_code();
    return;
  }
  if (all_told) run_.exit_code = 0;
}

std::vector<std::string> Job::stored() const {
  std::vector<std::string> pieces;
  for (const Node& node : nodes_) {
    pb::StoredNode stored = node.stored;
    for (const auto& [rank, entry] : node.ranks) *stored.add_ranks() = entry;
    pieces.push_back(stored.SerializeAsString());
  }
  return pieces;
}

}  // namespace stepscope::hub
