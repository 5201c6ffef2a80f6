// Waits for the child: passes signals on, mirrors stops, keeps an agent alive, tells the segment
// folder how it ended.
//
//   start_child --> [child runs] --its end--> code in the member file --> [agent ends the run]
//                      | agent died: started again, up to kAgentRestarts times
//
// Thread safety: one thread. Lifetime: one run. Invariant: nothing here can end or hold up the
// child; after the child's end at most kAgentEndNs are waited, and a signal ends even that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/child.h"
#include "cli/page_process.h"
#include "cli/segment_folder.h"
#include "cli/signals.h"

namespace stepscope::cli {

class Supervisor {
 public:
  // A line of the agent that begins so is said at once, the others at the end.
  static constexpr std::string_view kLivePrefix = "live=";
  static constexpr size_t kMaxLiveLine = 300;
  static constexpr int kAgentRestarts = 3;
  static constexpr int64_t kAgentEndNs = 5'000'000'000;

  // segment_folder empty: nothing is recorded. owner: this supervisor started the run and keeps its
  // agent.
  // quiet: what the agent finds is not said while the run goes on.
  Supervisor(Signals signals, std::optional<Witness> witness, std::string segment_folder,
             bool owner, bool quiet, Member self);

  // The run's page, shown while it goes on. Before start().
  void show_page(PageProcess page) { page_.emplace(std::move(page)); }
  void wait_for_page();  // until it has said goodbye, after the run's end

  Started start(const std::vector<std::string>& command,
                const std::vector<std::string>& environment);
  int wait();  // until the child's end; its exit code

  // Until the agent has ended the run. What it said comes out.
  struct RunEnd {
    bool finished = false;      // the summary is final
    bool others_alive = false;  // other ranks' processes still run
    bool interrupted = false;   // a signal ended the wait
    std::string moved_to;       // the summary is there, not in the run folder
    std::vector<std::string> said;
  };
  RunEnd wait_for_end();
  bool others_alive() const;

  const Signals& signals() const { return signals_; }

 private:
  void handle_signals();
  void pass_on(const Signal& signal);
  void reap();
  void child_stopped(int signal_number);
  void agent_gone(int status);
  void launch_agent();
  void read_agent();
  void agent_said(const std::string& line);
  void read_page();
  void poll_once(int64_t until_ns);
  void write_own_member();

  Signals signals_;
  std::optional<Witness> witness_;
  std::string folder_;
  bool owner_;
  bool quiet_;
  Member self_;
  Forwarding forwarding_;
  pid_t child_ = -1;
  std::optional<int> status_;  // of the child, as waitpid gives it
  StartedAgent agent_;
  std::optional<PageProcess> page_;
  int agent_starts_ = 0;
  int64_t next_agent_start_ns_ = -1;
  bool asked_to_stop_ = false;
  bool summary_wanted_ = false;  // the agent is to write it at once
  std::string agent_text_;
  std::string agent_line_;  // not whole yet
};

}  // namespace stepscope::cli
