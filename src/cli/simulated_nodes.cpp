#include "cli/simulated_nodes.h"

#include <algorithm>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "cli/hub_options.h"

namespace stepscope::cli {
namespace {

constexpr int64_t kFinishNs = 60'000'000'000;  // all steps may still have to travel

}  // namespace

Result<SimulatedNodes> SimulatedNodes::join(const std::map<std::string, std::string>& hub,
                                            const RunHistory& run) {
  SimulatedNodes out;
  for (const RankHistory& rank : run.ranks)
    if (out.index_.emplace(rank.node, out.nodes_.size()).second)
      out.nodes_.push_back({rank.node, nullptr, {}});
  if (out.nodes_.size() > kMost)
    return Error{std::to_string(out.nodes_.size()) + " nodes are more than can be simulated here",
                 "at most " + std::to_string(kMost) + ": --nodes"};
  for (Node& node : out.nodes_) {
    auto options = link_options(hub);
    if (!options) return options.error();
    options->join.set_run_id(run.id);
    options->join.set_run_name(run.name);
    for (const std::string& word : run.command) options->join.add_command(word);
    options->join.set_node(node.name);
    options->join.set_instance(run.id + "/" + node.name);
    node.link = std::make_unique<hub::Link>(std::move(*options));
    node.part.id = run.id;
    node.part.live = true;
  }
  return out;
}

void SimulatedNodes::lend(RunHistory& run) {
  for (RankHistory& rank : run.ranks)
    nodes_[index_.at(rank.node)].part.ranks.push_back(std::move(rank));
  run.ranks.clear();
}

void SimulatedNodes::give_back(RunHistory& run) {
  for (Node& node : nodes_) {
    for (RankHistory& rank : node.part.ranks) run.ranks.push_back(std::move(rank));
    node.part.ranks.clear();
  }
  std::sort(run.ranks.begin(), run.ranks.end(),
            [](const RankHistory& a, const RankHistory& b) { return a.rank < b.rank; });
}

void SimulatedNodes::offer(RunHistory& run) {
  lend(run);
  const int64_t now_ns = monotonic_ns();
  for (Node& node : nodes_) node.link->offer(node.part, now_ns);
  give_back(run);
}

Result<hub::pb::JobSummary> SimulatedNodes::finish(RunHistory& run) {
  lend(run);
  const int64_t deadline_ns = monotonic_ns() + kFinishNs;
  std::vector<std::optional<hub::pb::JobSummary>> summaries(nodes_.size());
  std::vector<std::thread> threads;  // each waits for the others
  for (size_t i = 0; i < nodes_.size(); ++i)
    threads.emplace_back([&, i] {
      summaries[i] = nodes_[i].link->finish(nodes_[i].part, run.exit_code, deadline_ns);
    });
  for (std::thread& thread : threads) thread.join();
  give_back(run);
  for (auto& summary : summaries)
    if (summary && summary->complete()) return std::move(*summary);
  const std::string problem = nodes_.front().link->state().problem;
  return Error{"the hub gave no summary of the whole run: " +
                   (problem.empty() ? "no answer in time" : problem),
               "the hub's log says more"};
}

}  // namespace stepscope::cli
