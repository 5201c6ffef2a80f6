// A fault of a simulated run, as words:
//
//   rank=17 phase=input add=40ms from=200      one rank does 40 ms more input a step, from step 200 on
//   node=1 add=15% to=300                      all ranks of node 1; a percentage is of the step asked for
//   all add=10ms ramp to=300                   grows evenly up to 10 ms at step 300
//   rotating add=30ms tokens=yes               each step one rank, drawn anew; token counts follow the work asked for
//   spike add=2s every=100                     every 100th step one rank (drawn, or rank=) does 2 s more
//   rank=3 stuck from=100                      never leaves the phase of that step
//   rank=3 leave from=100 | rank=3 join from=100    elastic: is not there from (before) that step on
//
// Thread safety: pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "model/phase.h"

namespace stepscope::simulator {

enum class Who : uint8_t { kRank, kNode, kAll, kRotating, kSpike };
enum class What : uint8_t { kAdd, kStuck, kLeave, kJoin };

struct Fault {
  std::optional<Who> who;
  What what = What::kAdd;
  int32_t number = 0;  // of the rank or node
  Phase phase = Phase::kForward;
  double add_ms = 0;
  double add_share = 0;  // of the step, instead of add_ms
  bool ramp = false, tokens = false;
  std::optional<int32_t> rank;  // of a spike
  int64_t every = 100;          // spikes
  int64_t from = 0;
  std::optional<int64_t> to;  // the last step with it
};

// An Error names the word that cannot be read, and what could stand there.
Result<Fault> parse_fault(std::string_view text);

}  // namespace stepscope::simulator
