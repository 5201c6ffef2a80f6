// stepscope simulate: a made-up run of many ranks with the faults asked for, straight into the engine. Leaves a run
// folder like any run.
#include <memory>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/hub_folder.h"
#include "cli/hub_options.h"
#include "cli/run_folder.h"
#include "cli/say.h"
#include "cli/simulated_nodes.h"
#include "engine/engine.h"
#include "report/report.h"
#include "report/summary_bytes.h"
#include "simulator/simulator.h"
#include "store/store.h"

namespace stepscope::cli {
namespace {

constexpr int64_t kLookEvery = 1000;  // steps: before raw ones are trimmed
constexpr int64_t kOfferEvery = 10;
constexpr int64_t kMostAtHub = RankHistory::kMaxRaw;

struct SimulateOptions {
  simulator::Options run;
  std::vector<std::string> faults;
  std::string run_dir;
  HubFlags hub;
  bool json = false, quiet = false;
};

Status read_faults(SimulateOptions& options) {
  for (const std::string& text : options.faults) {
    const auto fault = simulator::parse_fault(text);
    if (!fault) return fault.error();
    options.run.faults.push_back(*fault);
  }
  return options.run.check();
}

// In pieces, as an agent looks at a run: raw steps that were trimmed since are judged all the same.
void make(const simulator::Options& options, simulator::Simulator& simulator, RunHistory& run,
          SimulatedNodes* nodes) {
  bool stuck = true;
  for (int64_t step = 1; simulator.step(run); ++step) {
    if (nodes != nullptr && step % kOfferEvery == 0) nodes->offer(run);
    if (step % kLookEvery == 0) run.comparison = engine::compare_ranks(run);
    stuck = step < options.steps;
  }
  run.live = stuck;  // the state of now, in which nothing moves
  run.comparison = engine::compare_ranks(run);
}

Status write(const RunHistory& run, const std::vector<Finding>& findings,
             const report::Summary& summary) {
  auto store = store::Store::create(run.folder);
  if (!store) return store.error();
  if (const Status committed = store->commit(run, {}); !committed) return committed;
  if (const Status finished = store->finish(run, findings, report::to_bytes(summary)); !finished)
    return finished;
  const Status json =
      write_file(run.folder + "/summary.json", report::to_json(summary) + "\n", 0644, true);
  if (!json) return json;
  const report::CardStyle plain{.colour = false, .unicode = true, .width = 80};
  return write_file(run.folder + "/summary.txt", report::card(summary, plain), 0644, true);
}

// The hub judges it; here is only what it said.
int finish_at_hub(SimulatedNodes& nodes, RunHistory& run, const SimulateOptions& options) {
  const auto summary = nodes.finish(run);
  if (!summary) return wrong_use(summary.error());
  if (const Status written = write_summary_of_hub(run.folder, *summary); !written)
    return wrong_use(written.error());
  if (!options.quiet) (void)write_all(2, summary->card());
  if (options.json) print(summary->summary_json() + "\n");
  return kFine;
}

int simulate(SimulateOptions options, const std::vector<std::string>& command) {
  if (const Status fine = read_faults(options); !fine) return wrong_use(fine.error());
  const auto hub = check_hub_flags(options.hub);
  if (!hub) return wrong_use(hub.error());
  if (!hub->empty() && options.run.steps > kMostAtHub)
    return wrong_use({"with --hub a run has at most " + std::to_string(kMostAtHub) + " steps",
                      "nothing paces it: what the hub has not got yet must still be here"});
  const int64_t now_ns = wall_ns();
  const std::string name = "simulated-" + time_label(now_ns);
  const auto folder = make_run_folder({.run_dir = options.run_dir,
                                       .overwrite = false,
                                       .name = name,
                                       .cwd = absolute_path("."),
                                       .run_id = name,
                                       .environment = current_environment()});
  if (!folder) return wrong_use(folder.error());
  simulator::Simulator simulator(options.run);
  RunHistory run = simulator.start();
  run.name = folder->name;
  run.id = name;
  run.folder = folder->path;
  run.command = command;
  run.started_wall_ns = now_ns;
  run.notices = folder->notices;
  run.notices.push_back("simulated: no training process ran");
  std::optional<SimulatedNodes> nodes;
  if (!hub->empty()) {
    auto joined = SimulatedNodes::join(*hub, run);
    if (!joined) return wrong_use(joined.error());
    nodes.emplace(std::move(*joined));
  }
  make(options.run, simulator, run, nodes ? &*nodes : nullptr);
  if (!run.live) run.exit_code = 0;
  if (nodes) return finish_at_hub(*nodes, run, options);
  const std::vector<Finding> findings = engine::diagnose(run);
  const report::Summary summary = report::summarize(run, findings);
  if (!run.folder.empty())
    if (const Status written = write(run, findings, summary); !written)
      return wrong_use(written.error());
  if (!options.quiet) (void)write_all(2, report::card(summary, report::style_for(2)));
  if (options.json) print(report::to_json(summary) + "\n");
  return kFine;
}

}  // namespace

void add_simulate(CLI::App& app, Action& action) {
  const auto options = std::make_shared<SimulateOptions>();
  CLI::App* simulate_app =
      app.add_subcommand("simulate", "Make up a run of many ranks with faults, and judge it");
  simulate_app->footer(
      "Faults: rank=17 phase=input add=40ms from=200 | node=1 add=15% | all add=10ms ramp to=300 "
      "|\n"
      "rotating add=30ms tokens=yes | spike add=2s every=100 | rank=3 stuck from=100 |\n"
      "rank=3 leave from=100 | rank=3 join from=100");
  simulate_app->add_option("--ranks", options->run.ranks, "Ranks (default: 8)");
  simulate_app->add_option("--nodes", options->run.nodes, "Nodes (default: one for 8 ranks)");
  simulate_app->add_option("--steps", options->run.steps, "Steps (default: 300)");
  simulate_app->add_option("--seed", options->run.seed,
                           "The same seed gives the same run (default: 0)");
  simulate_app
      ->add_option("--noise", options->run.noise, "Noise of a rank's work, a share (default: 0.05)")
      ->check(CLI::Range(0.0, 1.0));
  simulate_app->add_flag("--heavy", options->run.heavy, "Noise with heavy tails");
  simulate_app->add_option("--syncs", options->run.syncs, "Sync points a step (default: 1)")
      ->check(CLI::Range(1, static_cast<int>(StepSample::kMaxSyncs) - 1));
  simulate_app
      ->add_option("--clock-hours", options->run.clock_hours,
                   "Ranks' clocks are apart by up to so many hours (default: 10)")
      ->check(CLI::Range(0.0, 1e6));
  simulate_app
      ->add_option("--clock-ppm", options->run.clock_ppm,
                   "and run fast or slow by up to so many millionths (default: 200)")
      ->check(CLI::Range(0.0, 1e5));
  simulate_app->add_option("--fault", options->faults, "A fault; may be given several times")
      ->option_text("TEXT")
      ->take_all();
  add_node_flags(*simulate_app, options->hub);
  simulate_app->add_option("--run-dir", options->run_dir, "Folder for its files")
      ->option_text("DIR");
  simulate_app->add_flag("--json", options->json, "Print summary.json");
  simulate_app->add_flag("--quiet", options->quiet, "No card");
  simulate_app->callback([&action, options] {
    std::vector<std::string> command = {"stepscope", "simulate",
                                        "--ranks",   std::to_string(options->run.ranks),
                                        "--steps",   std::to_string(options->run.steps)};
    for (const std::string& fault : options->faults)
      command.insert(command.end(), {"--fault", fault});
    action = [options, command] { return simulate(*options, command); };
  });
}

}  // namespace stepscope::cli
