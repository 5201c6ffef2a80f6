// What the waiting that is left beside the slow ranks looks like: spikes, rotating imbalance, jitter, or too little to
// speak of. Exactly one of them. Pure.
#pragma once

#include "model/history.h"

namespace stepscope::engine {

enum class Waiting { kLittle, kSpikes, kRotating, kJitter };
Waiting kind_of_waiting(const RunHistory& run);
inline bool has_waiting_finding(const RunHistory& run) {
  return kind_of_waiting(run) != Waiting::kLittle;
}

}  // namespace stepscope::engine
