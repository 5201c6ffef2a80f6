#include "cli/live_findings.h"

#include <algorithm>
#include <map>

#include "engine/engine.h"

namespace stepscope::cli {
namespace {

constexpr int64_t kLookNs = 5'000'000'000;
constexpr int64_t kCostShare = 100;

bool is_worth_saying(const Finding& f) {
  return f.severity != Severity::kInfo && f.confidence == "certain" &&
         (f.pattern || f.code == "STUCK");
}

// Spikes, jitter and the like are of the whole run: they do not open and close.
bool opens_and_closes(const Finding& f) {
  return f.code == "STUCK" || f.pattern == "persistent" || f.pattern == "groups";
}

std::string key_of(const Finding& f) {
  std::string key = f.code;
  if (f.rank) key += " rank " + std::to_string(*f.rank);
  if (f.node) key += " node " + *f.node;
  if (f.phase && !opens_and_closes(f)) key += " " + *f.phase;
  return key;
}

size_t open_episodes(const RunHistory& run) {
  const auto& all = run.comparison.episodes;
  return static_cast<size_t>(
      std::count_if(all.begin(), all.end(), [](const Episode& e) { return !e.ended; }));
}

}  // namespace

bool LiveFindings::due(const RunHistory& run, int64_t now_ns) const {
  return now_ns >= next_look_ns_ || run.comparison.episodes.size() != episodes_seen_ ||
         open_episodes(run) != episodes_open_;
}

std::vector<std::string> LiveFindings::update(const RunHistory& run, int64_t now_ns,
                                              int64_t (*clock)()) {
  if (!due(run, now_ns)) return {};
  const int64_t begin_ns = clock();
  const std::vector<Finding> findings = engine::diagnose(run);
  next_look_ns_ = now_ns + std::max(kLookNs, (clock() - begin_ns) * kCostShare);
  episodes_seen_ = run.comparison.episodes.size();
  episodes_open_ = open_episodes(run);
  return lines(findings);
}

std::vector<std::string> LiveFindings::lines(const std::vector<Finding>& findings) {
  if (said_lines_ >= kMostLines) return {};
  std::vector<std::string> lines;
  std::set<std::string> still_open;
  std::map<std::string, std::string> ended;
  for (const Finding& f : findings) {
    if (!is_worth_saying(f)) continue;
    const std::string key = key_of(f);
    if (!opens_and_closes(f)) {
      if (said_.insert(key).second) lines.push_back("found " + f.code + ": " + f.title);
    } else if (f.ended) {
      ended.emplace(key, f.title);
    } else if (still_open.insert(key).second && !open_.contains(key)) {
      lines.push_back("found " + f.code + ": " + f.title);
    }
  }
  for (const std::string& key : open_) {
    if (still_open.contains(key)) continue;
    const auto title = ended.find(key);
    lines.push_back("over: " + key + (title == ended.end() ? "" : ": " + title->second));
  }
  open_ = std::move(still_open);
  said_lines_ += static_cast<int>(lines.size());
  return lines;
}

}  // namespace stepscope::cli
