// Folds the records of one process into steps: who owned each instant of the step thread's timeline.
//
// Rules (design, "Where the hooks are" and "A step"): the innermost span owns the time, except that validation,
// checkpoint and profiler own all within them (the innermost of these three), and gc and compile are taken out of
// whatever they interrupt. Phases of a step are exclusive and add up to it.
//
// Thread safety: none, one owner. Bounded: keeps at most kMaxPending records of the step in progress; beyond that the
// step is incomplete. Pure: no clock, no I/O. Invariant: records are pushed in the order of their index.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model/step_sample.h"
#include "ring/reader.h"

namespace stepscope::agent {

struct Folded {
  std::vector<StepSample> steps;
  std::vector<Occurrence> occurrences;
};

class Fold {
 public:
  static constexpr size_t kMaxPending = 100'000;
  // name_of: user phase number -> name
  Fold(int32_t rank, std::function<std::string(uint8_t)> name_of);

  void push(const ring::RecordValue& record, Folded& out);
  void note_loss(uint64_t records);   // dropped or holes: the step in progress is incomplete
  void finish(Folded& out);           // the process ended: rule (d)
  uint64_t needed_index() const;      // records before this are in steps already given out
  void set_rank(int32_t rank);

 private:
  // ...
};

}  // namespace stepscope::agent
