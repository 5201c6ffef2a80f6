#include "agent/notices.h"

#include <algorithm>
#include <string_view>

namespace stepscope::agent {
namespace {

// Steps of which events are missing are StepSample::incomplete: counted, in no average.
constexpr std::string_view kDropsEnd =
    " because the ring was full; the steps concerned are marked incomplete and left out of the "
    "averages";

std::string grouped(int64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

}  // namespace

void note(RunHistory& run, const std::string& text) {
  auto& notices = run.notices;
  if (notices.size() < kMaxNotices &&
      std::find(notices.begin(), notices.end(), text) == notices.end())
    notices.push_back(text);
}

void note_drops(RunHistory& run) {
  int64_t dropped = 0, ranks = 0, rank = 0;
  for (const RankHistory& r : run.ranks) {
    if (r.records_dropped == 0) continue;
    dropped += r.records_dropped;
    ++ranks;
    rank = r.rank;
  }
  if (dropped == 0) return;
  const std::string text =
      (ranks == 1 ? "rank " + std::to_string(rank) : std::to_string(ranks) + " ranks") + ": " +
      grouped(dropped) + (dropped == 1 ? " event was dropped" : " events were dropped") +
      std::string(kDropsEnd);
  const auto earlier =
      std::find_if(run.notices.begin(), run.notices.end(),
                   [&](const std::string& notice) { return notice.ends_with(kDropsEnd); });
  if (earlier != run.notices.end())
    *earlier = text;
  else
    note(run, text);
}

}  // namespace stepscope::agent
