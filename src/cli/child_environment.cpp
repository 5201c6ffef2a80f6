#include "cli/child_environment.h"

#include "cli/child.h"

namespace stepscope::cli {

std::vector<std::string> observed_environment(
    const std::string& segment_folder, const std::string& run_id,
    const std::optional<std::string>& inject, const Settings& settings,
    const Environment& environment, std::vector<std::pair<std::string, std::string>> more) {
  const auto effective = settings.effective();
  std::vector<std::pair<std::string, std::string>> additions = std::move(more);
  additions.insert(additions.end(),
                   {{"STEPSCOPE_SEGMENTS", segment_folder},
                    {"STEPSCOPE_RUN_ID", run_id},
                    {"STEPSCOPE_SEGMENT_KB", effective.at("segment_kb")},
                    {"STEPSCOPE_WORKER_SEGMENT_KB", effective.at("worker_segment_kb")},
                    {"STEPSCOPE_SHM_SHARE", effective.at("shm_share")}});
  const auto found = environment.find("PYTHONPATH");
  const std::string before = found == environment.end() ? "" : found->second;
  const bool already =
      inject && (before == *inject || before.starts_with(*inject + ":"));  // a run within a run
  if (inject && !already)
    additions.emplace_back("PYTHONPATH", before.empty() ? *inject : *inject + ":" + before);
  return environment_with(additions);
}

}  // namespace stepscope::cli
