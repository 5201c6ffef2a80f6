// Many nodes at one hub: senders in this process, the hub in another. `bench_hub [--ranks 4096]
// [--nodes 512] [--rate 10] [--seconds 30]`, with the hub's binary in $STEPSCOPE_BIN.
//
// Each node is a Link as an agent has it, but all of them are fed by one thread. Prints whether the
// hub kept up (steps that it has at the end, and how far it was behind at the worst), how old its
// verdict was, and what memory it took. The input of every rank becomes slow in mid-run: seconds from
// there, and from the step on which the engine, asked of two such ranks after every step, gives the new
// verdict, until the hub's log has it.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "engine/engine.h"
#include "hub/link.h"

namespace {

using namespace stepscope;
constexpr int64_t kSecond = 1'000'000'000, kMs = 1'000'000;

struct Setup {
  int32_t ranks = 4096, nodes = 512, rate = 10, seconds = 30;
};

struct Hub {
  pid_t pid = -1;
  uint16_t port = 0;
  std::string log;
};

std::string content(const std::string& path) {
  const auto text = read_file(path);
  return text ? *text : "";
}

Hub start_hub(const std::string& folder) {
  Hub hub;
  hub.log = folder + "/hub.log";
  const char* binary = std::getenv("STEPSCOPE_BIN");
  hub.pid = fork();
  if (hub.pid == 0) {
    const int log = open(hub.log.c_str(), O_WRONLY | O_CREAT, 0644);
    dup2(log, 2);
    const std::string token = folder + "/token", run = folder + "/run";
    execlp(binary != nullptr ? binary : "stepscope", "stepscope", "hub", "--listen", "127.0.0.1:0",
           "--token-file", token.c_str(), "--run-dir", run.c_str(), nullptr);
    _exit(127);
  }
  for (int i = 0; i < 500 && hub.port == 0; ++i) {
    poll(nullptr, 0, 20);
    const std::string text = content(hub.log);
    const size_t at = text.find("127.0.0.1:");
    if (at != std::string::npos && text.find('\n') != std::string::npos)
      hub.port = static_cast<uint16_t>(std::atoi(text.c_str() + at + 10));
  }
  return hub;
}

int64_t status_kb(pid_t pid, const char* key) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(key)) return std::atoll(line.c_str() + std::strlen(key));
  return 0;
}

double cpu_s(pid_t pid) {
  const std::string stat = content("/proc/" + std::to_string(pid) + "/stat");
  const size_t at = stat.rfind(')');
  long long user = 0, system = 0;
  if (at == std::string::npos ||
      std::sscanf(stat.c_str() + at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lld %lld",
                  &user, &system) != 2)
    return 0;
  return static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// A step of 100 ms as diagnosis.md's worked example has it, with one synchronisation.
StepSample step_of(int32_t rank, int64_t number, int64_t begin_ns, bool slow,
                   std::minstd_rand& random) {
  const auto noise = [&](int64_t ns) {
    return ns + std::uniform_int_distribution<int64_t>(-ns / 20, ns / 20)(random);
  };
  StepSample s;
  s.rank = rank;
  s.step = number;
  s.begin_ns = begin_ns;
  s[Phase::kInput] = noise((slow ? 60 : 5) * kMs);
  s[Phase::kForward] = noise(30 * kMs);
  s[Phase::kBackward] = noise(50 * kMs);
  s[Phase::kOptimizer] = noise(10 * kMs);
  int64_t total = 0;
  for (const int64_t ns : s.phase_ns) total += ns;
  s[Phase::kSync] = 5 * kMs;
  s.end_ns = begin_ns + total + 5 * kMs;
  s.fetches = s.backwards = s.optimizer_steps = 1;
  s.samples = 32;
  s.syncs.push_back({.group = 1,
                     .index = static_cast<uint32_t>(number),
                     .members = 4096,
                     .ready_ns = begin_ns + total,
                     .leave_ns = s.end_ns,
                     .together = true});
  return s;
}

RankHistory rank_of(int32_t rank, int32_t world_size, const std::string& node) {
  RankHistory history;
  history.rank = rank;
  history.world_size = world_size;
  history.pid = 1000 + rank;
  history.facts = 0x36;  // loader, DDP, root module
  history.node = node;
  return history;
}

// Two ranks of the same job in this process, without noise of the machine or a hub.
class Reference {
 public:
  Reference() {
    run_.live = true;
    run_.nodes.emplace_back().node = "reference";
    for (int32_t r = 0; r < 2; ++r) run_.ranks.push_back(rank_of(r, 2, "reference"));
  }
  // Whether input bounds the run as a whole with this step.
  bool input_bound_with(int64_t number, int64_t begin_ns, bool slow) {
    for (RankHistory& rank : run_.ranks)
      rank.add(step_of(rank.rank, number, begin_ns, slow, random_), run_.settings);
    return engine::diagnose(run_).front().code == "INPUT_BOUND";
  }

 private:
  RunHistory run_;
  std::minstd_rand random_{2};
};

struct Sender {
  RunHistory run;
  std::unique_ptr<hub::Link> link;
};

std::vector<Sender> make_senders(const Setup& setup, const Hub& hub) {
  std::vector<Sender> senders(static_cast<size_t>(setup.nodes));
  const int32_t each = setup.ranks / setup.nodes;
  for (int32_t n = 0; n < setup.nodes; ++n) {
    Sender& sender = senders[static_cast<size_t>(n)];
    sender.run.nodes.emplace_back().node = "node" + std::to_string(n);
    for (int32_t r = 0; r < each; ++r)
      sender.run.ranks.push_back(rank_of(n * each + r, setup.ranks, sender.run.nodes[0].node));
    hub::LinkOptions options{.hub = {.host = "127.0.0.1", .port = hub.port, .tls = false},
                             .token = {"a token for the benchmark only"},
                             .tls = {},
                             .join = {}};
    options.join.set_run_id("bench");
    options.join.set_run_name("bench");
    options.join.set_node(sender.run.nodes[0].node);
    options.join.set_instance(std::to_string(n));
    sender.link = std::make_unique<hub::Link>(std::move(options));
  }
  return senders;
}

size_t joined(const std::vector<Sender>& senders) {
  return static_cast<size_t>(std::count_if(senders.begin(), senders.end(),
                                           [](const Sender& s) { return s.link->state().joined; }));
}

int run(const Setup& setup) {
  const char* temporary = std::getenv("TMPDIR");
  std::string folder =
      std::string(temporary != nullptr ? temporary : "/tmp") + "/stepscope-bench-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return 1;
  (void)write_file(folder + "/token", "a token for the benchmark only\n", 0600);
  const Hub hub = start_hub(folder);
  if (hub.port == 0) {
    std::fprintf(stderr, "the hub did not start: %s\n", content(hub.log).c_str());
    return 2;
  }
  std::vector<Sender> senders = make_senders(setup, hub);
  const int64_t connecting_ns = monotonic_ns();
  while (joined(senders) < senders.size() && monotonic_ns() - connecting_ns < 60 * kSecond)
    poll(nullptr, 0, 50);
  std::printf("joined       %zu of %d nodes in %.1f s\n", joined(senders), setup.nodes,
              static_cast<double>(monotonic_ns() - connecting_ns) / 1e9);

  std::minstd_rand random(1);
  const int64_t begin_ns = monotonic_ns();
  const int64_t step_ns = kSecond / setup.rate;
  const int64_t steps = int64_t{setup.seconds} * setup.rate, slow_from = steps / 2;
  int64_t slow_ns = 0, true_ns = 0, named_ns = 0, late_ns = 0;
  Reference reference;
  size_t lines_before = 0;
  const double cpu_before = cpu_s(hub.pid);
  for (int64_t number = 0; number < steps; ++number) {
    const int64_t due_ns = begin_ns + number * step_ns;
    for (int64_t now = monotonic_ns(); now < due_ns; now = monotonic_ns())
      poll(nullptr, 0, static_cast<int>(std::max<int64_t>((due_ns - now) / kMs, 1)));
    late_ns = std::max(late_ns, monotonic_ns() - due_ns);
    if (number == slow_from) {
      slow_ns = monotonic_ns();
      lines_before = content(hub.log).size();
    }
    if (true_ns == 0 && reference.input_bound_with(number, due_ns, number >= slow_from))
      true_ns = monotonic_ns();
    for (Sender& sender : senders) {
      for (RankHistory& rank : sender.run.ranks) {
        rank.add(step_of(rank.rank, number, due_ns, number >= slow_from, random),
                 sender.run.settings);
        rank.keep(50, 10, 10);  // 512 agents in one process
        rank.doing = Doing{"forward", number, kMs, true};
      }
      sender.run.duration_ns = due_ns - begin_ns;
      sender.link->offer(sender.run, monotonic_ns());
    }
    if (slow_ns != 0 && named_ns == 0 &&
        content(hub.log).find("INPUT_BOUND", lines_before) != std::string::npos)
      named_ns = monotonic_ns();
  }
  const double cpu = cpu_s(hub.pid) - cpu_before;
  const double seconds = static_cast<double>(monotonic_ns() - begin_ns) / 1e9;
  const int64_t running_mb = status_kb(hub.pid, "VmHWM:") / 1024;
  const int64_t end_ns = monotonic_ns();
  std::vector<std::optional<hub::pb::JobSummary>> summaries(senders.size());
  std::vector<std::thread> ends;
  for (size_t i = 0; i < senders.size(); ++i)
    ends.emplace_back([&, i] {
      summaries[i] = senders[i].link->finish(senders[i].run, 0, monotonic_ns() + 60 * kSecond);
    });
  for (std::thread& end : ends) end.join();
  const auto& summary = summaries.front();
  const double drain = static_cast<double>(monotonic_ns() - end_ns) / 1e9;
  const double late = static_cast<double>(late_ns) / 1e9;
  const auto until_named = [&](int64_t from_ns) {
    return named_ns == 0 ? -1 : static_cast<double>(named_ns - from_ns) / 1e9;
  };
  const int64_t most_mb = status_kb(hub.pid, "VmHWM:") / 1024;
  const bool complete = summary && summary->complete();
  std::printf(
      "sent         %d ranks x %lld steps in %.1f s; the senders were %.2f s late at worst\n",
      setup.ranks, static_cast<long long>(steps), seconds, late);
  std::printf("hub          %.2f cores; at most %lld MB while running, %lld MB with the end\n",
              cpu / seconds, static_cast<long long>(running_mb), static_cast<long long>(most_mb));
  std::printf(
      "verdict      a new one %.1f s after it was true of the run, %.1f s after its cause (-1: "
      "none)\n",
      until_named(true_ns), until_named(slow_ns));
  std::printf("end          summary after %.1f s: %s\n", drain,
              complete ? "complete" : "not complete");
  if (summary) std::printf("%s\n", summary->card().c_str());
  std::printf(
      "{\"ranks\": %d, \"hub_cores\": %.3f, \"hub_mb\": %lld, \"senders_late_s\": %.3f, "
      "\"verdict_age_s\": %.2f, \"verdict_s\": %.2f, \"end_s\": %.2f, \"complete\": %s}\n",
      setup.ranks, cpu / seconds, static_cast<long long>(most_mb), late, until_named(true_ns),
      until_named(slow_ns), drain, complete ? "true" : "false");
  senders.clear();
  kill(hub.pid, SIGTERM);
  waitpid(hub.pid, nullptr, 0);
  remove_tree(folder);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Setup setup;
  const std::map<std::string, int32_t*> options = {{"--ranks", &setup.ranks},
                                                   {"--nodes", &setup.nodes},
                                                   {"--rate", &setup.rate},
                                                   {"--seconds", &setup.seconds}};
  for (int i = 1; i + 1 < argc; i += 2) {
    const auto option = options.find(argv[i]);
    if (option == options.end()) {
      std::fprintf(stderr, "bench_hub: no option %s\n", argv[i]);
      return 2;
    }
    *option->second = std::atoi(argv[i + 1]);
  }
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  return run(setup);
}
