// One run in the hub: its history, run.db, summary, and the folder in /dev/shm through which other
// commands of this machine (show, status, clean) see that it is live and ask what it is like.
//
//   create or open -> tick (10 times a second: requests; once a second: commit;   -> finish
//                           twice a second, if it is quick enough: diagnose)      or leave
// The folder in /dev/shm is that of an agent without segments (segment_folder.h): agent.lock says
// that somebody keeps the run, api.sock answers. A hub that was killed leaves both, and whoever
// comes next finishes the run or, as a hub, goes on with it.
//
// Thread safety: none; the hub's thread. Invariant: what run.db has is what a node will be told that
// the hub has, also after a kill.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "cli/live_findings.h"
#include "cli/segment_folder.h"
#include "hub/hub.pb.h"
#include "hub/job.h"
#include "model/finding.h"
#include "report/report.h"
#include "serve/loop.h"
#include "store/store.h"

namespace stepscope::cli {

class HubRun {
 public:
  // In an empty folder that exists.
  static Result<std::unique_ptr<HubRun>> create(const std::string& folder, const std::string& name,
                                                const hub::pb::Join& join);
  // Of an earlier hub.
  static Result<std::unique_ptr<HubRun>> open(const std::string& folder);
  // Whether a node of that instance was in the run that the folder holds.
  static bool knows(const std::string& folder, const std::string& instance);
  ~HubRun();

  const std::shared_ptr<hub::Job>& job() const { return job_; }
  const std::string& folder() const { return info_.folder; }

  struct News {
    std::optional<std::string> verdict;  // for the log: its first words, when they have changed
    std::vector<std::string> lines;      // for the people at the nodes
  };
  News tick(int64_t now_ns);
  hub::pb::JobSummary finish(int64_t now_ns);  // the run is over
  void leave(int64_t now_ns);                  // the hub ends, the run may go on with another
  hub::pb::JobSummary summary_of_now(int64_t now_ns);  // for a node that ends before others

 private:
  HubRun(store::Store store, RunHistory run, const std::vector<std::string>& stored, RunInfo info);
  Status meet();
  void part();  // nobody meets here any more
  void commit(int64_t now_ns);
  bool diagnosis_due(int64_t now_ns) const;
  const std::vector<Finding>& diagnose(int64_t now_ns, bool now);
  report::Summary summarize(int64_t now_ns, bool live);
  hub::pb::JobSummary for_nodes(bool complete);
  Status write_files(const report::Summary& summary) const;
  std::string health_json() const;
  std::string tick_json(int64_t now_ns, std::optional<int64_t> since_step);

  store::Store store_;
  std::shared_ptr<hub::Job> job_;
  RunInfo info_;
  std::string meeting_folder_;  // in /dev/shm; empty: none
  Fd lock_;
  serve::Loop loop_;
  std::vector<std::string> committed_;  // pieces of the job, as run.db has them
  std::vector<Finding> findings_;
  int64_t committed_ns_ = 0, diagnosed_ns_ = 0, diagnosing_took_ns_ = 0;
  bool storing_fails_ = false;
  std::string verdict_;
  LiveFindings live_;
  std::optional<int64_t> newest_step_;  // when it was last asked for
  int64_t newest_came_ns_ = 0;
  hub::pb::JobSummary of_now_;  // many nodes may end at once
  int64_t of_now_ns_ = 0, of_now_took_ns_ = 0;
};

}  // namespace stepscope::cli
