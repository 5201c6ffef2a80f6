// The runs of a hub: found by id among those that go on, then among the folders of an earlier hub,
// else begun.
//
// Thread safety: none; the hub's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cli/hub_run.h"
#include "hub/log.h"
#include "hub/server.h"

namespace stepscope::cli {

class HubRuns final : public hub::Jobs {
 public:
  HubRuns(std::string run_dir, std::string cwd, hub::Log& log);

  Result<std::shared_ptr<hub::Job>> job_for(const hub::pb::Join& join) override;
  hub::pb::JobSummary summary_of_now(hub::Job& job) override;

  void tick(hub::Server& server, int64_t now_ns);
  void leave(int64_t now_ns);
  bool empty() const { return runs_.empty(); }
  bool any_ever() const { return any_ever_; }

 private:
  std::string earlier_folder(const hub::pb::Join& join) const;
  Result<std::string> new_folder(const hub::pb::Join& join, std::string& name) const;

  std::string run_dir_, cwd_;
  hub::Log& log_;
  std::vector<std::unique_ptr<HubRun>> runs_;
  bool any_ever_ = false;
};

}  // namespace stepscope::cli
