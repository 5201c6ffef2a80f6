// A training loop in C++ that Stepscope observes: `stepscope run ./cpp_loop 200 input=2 forward=5`.
//
//   cpp_loop STEPS [PHASE=MS ...]    works MS milliseconds in each named phase of each step
//
// Prints `step N` when step N is finished, at once, so that a test can compare what it saw with
// what was recorded.
#include <stepscope/recorder.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

struct Work {
  std::string phase;
  double ms;
};

volatile double g_sink;

// Busy, not asleep: a sleep would overshoot.
void compute_for(double ms) {
  const auto until = Clock::now() + std::chrono::duration<double, std::milli>(ms);
  double x = 1;
  while (Clock::now() < until)
    for (int i = 0; i < 100; ++i) x = x * 1.000001 + 1e-9;
  g_sink = x;
}

bool parse(int argc, char** argv, long& steps, std::vector<Work>& work) {
  if (argc < 2) return false;
  char* end = nullptr;
  steps = std::strtol(argv[1], &end, 10);
  if (*end != '\0' || steps < 0) return false;
  for (int i = 2; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    if (equals == std::string::npos) return false;
    work.push_back({argument.substr(0, equals), std::strtod(argument.c_str() + equals + 1, &end)});
    if (*end != '\0' || work.back().ms < 0) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  long steps = 0;
  std::vector<Work> work;
  if (!parse(argc, argv, steps, work)) {
    std::fprintf(stderr,
                 "usage: cpp_loop STEPS [PHASE=MS ...]\nhint: cpp_loop 100 input=1 forward=2 "
                 "backward=3 optimizer=1\n");
    return 2;
  }
  if (work.empty()) work = {{"input", 1}, {"forward", 2}, {"backward", 3}, {"optimizer", 1}};

  stepscope::Run run = stepscope::start();
  for (long n = 0; n < steps; ++n) {
    {
      auto step = run.step();
      for (const Work& w : work) {
        auto phase = step.phase(w.phase.c_str());
        compute_for(w.ms);
      }
      step.samples(32);
    }
    std::printf("step %ld\n", n);
    std::fflush(stdout);
  }
  return 0;
}
