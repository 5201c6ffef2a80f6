#include "hub/delta.h"

#include <algorithm>

#include "hub/convert.h"

namespace stepscope::hub {
namespace {

constexpr size_t kMemoryOfMessage = 4000;

// The first of those at the end that are newer.
template <typename List, typename Newer>
auto first_newer(const List& list, Newer newer) {
  auto at = list.end();
  while (at != list.begin() && newer(*std::prev(at))) --at;
  return at;
}

}  // namespace

void Delta::reset(const pb::Have& have) {
  sent_.clear();
  for (const pb::Have::Rank& rank : have.ranks())
    sent_[rank.rank()] = {rank.begin_ns(), rank.step(), rank.memory_ns()};
}

Delta::Next Delta::next(const RunHistory& run, bool state) {
  Next out;
  pb::Update& update = *out.message.mutable_update();
  size_t steps_left = kStepsOfMessage, memory_left = kMemoryOfMessage;
  for (const RankHistory& rank : run.ranks) {
    Sent& sent = sent_[rank.rank];
    auto step = first_newer(rank.raw, [&](const StepSample& s) {
      return s.begin_ns > sent.begin_ns || (s.begin_ns == sent.begin_ns && s.step > sent.step);
    });
    auto memory =
        first_newer(rank.memory, [&](const MemorySample& m) { return m.mono_ns > sent.memory_ns; });
    if (!state && step == rank.raw.end() && memory == rank.memory.end()) continue;
    if (steps_left == 0 || memory_left == 0) {
      out.more = true;
      break;
    }
    out.empty = false;
    pb::RankUpdate& entry = *update.add_ranks();
    entry.set_rank(rank.rank);
    fill(rank, *entry.mutable_identity());
    for (; step != rank.raw.end() && steps_left > 0; ++step, --steps_left) {
      fill(*step, *entry.add_steps());
      sent.begin_ns = step->begin_ns;
      sent.step = step->step;
    }
    for (; memory != rank.memory.end() && memory_left > 0; ++memory, --memory_left) {
      fill(*memory, *entry.add_memory());
      sent.memory_ns = memory->mono_ns;
    }
    const bool whole = step == rank.raw.end();
    out.more = out.more || !whole || memory != rank.memory.end();
    if (whole) fill_totals(rank, *entry.mutable_totals());
    if (rank.doing) fill(*rank.doing, *entry.mutable_doing());
  }
  if (state) {
    out.empty = false;
    fill(run, run.nodes.empty() ? nullptr : &run.nodes.front(), *update.mutable_node());
  }
  return out;
}

}  // namespace stepscope::hub
