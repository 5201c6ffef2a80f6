// One run being recorded: segments, samples, history, run.db and summary in step with each other.
// The agent drives it by the clock; a command that finishes a dead run opens it and calls finish()
// at once.
//
// Thread safety: none; one owner, who holds agent.lock. Lifetime: open -> any number of poll,
// sample, commit -> finish.
// Invariant: a writer's records are released only after the commit that holds their steps, or when
// storing fails and the ring fills up. Nothing here fails the run: what cannot be stored goes on in
// memory, and the card says so.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/segments.h"
#include "base/result.h"
#include "cli/live_findings.h"
#include "cli/segment_folder.h"
#include "model/finding.h"
#include "model/history.h"
#include "report/report.h"
#include "report/views.h"
#include "sampler/sampler.h"
#include "store/store.h"

namespace stepscope::cli {

class Recording {
 public:
  // Begins, or goes on from what run.db holds.
  Recording(std::string segment_folder, RunInfo info);

  void poll(int64_t now_ns);
  // Compares the ranks up to the newest steps. The lines to say while the run goes on.
  std::vector<std::string> follow(int64_t now_ns);
  void sample(int64_t now_ns);
  void sample_memory(int64_t now_ns);  // between two samples: memory of the ranks only
  bool commit(int64_t now_ns);         // false: not stored, said in the notices

  // The end: the last records, exit code, run.db as one file, summary.json and summary.txt. When
  // the run folder takes nothing any more they go to a fallback place, which is returned; an Error
  // when there is none.
  struct Ended {
    std::optional<int> exit_code;
    int64_t duration_ns = 0;  // 0: until the last record
  };
  Result<std::string> finish(const Ended& ended, int64_t now_ns);

  Status write_summary(int64_t now_ns, bool live);  // of this moment
  std::string summary_json(int64_t now_ns, report::JsonForm form);
  std::string status(int64_t now_ns, const report::CardStyle& style);
  std::string card(int64_t now_ns, const report::CardStyle& style);
  std::string health_json(int64_t now_ns) const;
  Result<std::string> view(const report::ViewQuery& query, int64_t now_ns);
  std::string tick_json(int64_t now_ns, std::optional<int64_t> since_step);

  void control(wire::Control word) { segments_.control(word); }
  void note(const std::string& notice);  // once

  bool any_alive() const { return segments_.any_alive(); }
  bool any_seen() const { return segments_.any_seen(); }
  double fullest() const { return segments_.fullest(); }
  bool first_closed() const;  // the lowest rank seen closed its segment itself
  bool all_closed()
      const;  // every rank that the run should have was seen, and closed its segment itself
  const RunHistory& run() const { return run_; }

 private:
  void open_store();
  NodeHistory* own_node();
  void keep(std::map<int32_t, MemorySample> samples, int64_t now_ns);
  void refresh(int64_t now_ns, bool live);
  void tell_doing(int64_t now_ns);
  report::Summary summarize(int64_t now_ns, bool live);
  const std::vector<Finding>& findings(int64_t now_ns);  // of about this moment
  Status write_files(const std::string& folder, const report::Summary& summary) const;
  Result<std::string> write_elsewhere(const std::vector<Finding>& findings, const std::string& why);

  std::string folder_;  // of the segments
  RunInfo info_;
  RunHistory run_;
  std::optional<store::Store> store_;
  agent::Segments segments_;
  sampler::Sampler sampler_;
  agent::Batch batch_;
  LiveFindings live_;
  std::vector<Finding> findings_;
  int64_t next_findings_ns_ = 0;
  bool storing_fails_ = false;
};

}  // namespace stepscope::cli
