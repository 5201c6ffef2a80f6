// stepscope agent: started by `run` and by trace_step, not by people.
#include <memory>

#include "cli/agent_loop.h"
#include "cli/commands.h"

namespace stepscope::cli {

void add_agent(CLI::App& app, Action& action) {
  const auto options = std::make_shared<AgentOptions>();
  CLI::App* agent_app =
      app.add_subcommand("agent", "Record a run's segments (started by run and trace_step)");
  agent_app->group("");  // not in --help
  agent_app->add_option("--segments", options->segments, "The run's segment folder")->required();
  agent_app->add_flag("--detach", options->detach,
                      "Leave the starting process; make the run folder");
  agent_app->add_option("--id", options->id, "With --detach: the run's id");
  agent_app->add_option("--cwd", options->cwd, "With --detach: where stepscope-runs goes");
  agent_app->add_option("--name", options->name, "With --detach: the script's stem");
  agent_app->add_option("--command-json", options->command_json,
                        "With --detach: the command, as a JSON array");
  add_node_flags(*agent_app, options->hub);
  agent_app->callback([&action, options] { action = [options] { return run_agent(*options); }; });
}

}  // namespace stepscope::cli
