// Stepscope for C++ training loops: marks steps and phases, so that `stepscope run ./train` shows
// where each step's time goes. Outside `stepscope run` every call is a load and a return.
//
//     stepscope::Run run = stepscope::start();
//     for (...) {
//       auto step = run.step();
//       { auto phase = step.phase("input");    batch = next_batch(); }
//       { auto phase = step.phase("forward");  loss = model->forward(batch); }
//       { auto phase = step.phase("backward"); loss.backward(); }
//       { auto phase = step.phase("optimizer"); optimizer.step(); }
//       step.samples(batch_size);
//     }
//
// A step runs from the end of the one before it to its own end, so what lies between them is in it.
// The names input, h2d, forward, backward, sync, optimizer, checkpoint, validation, compile, gc,
// profiler add to these phases; any other name, up to 63 characters and 64 names, is a row of its
// own. Phases nest; the inner one owns the time.
//
// Thread safety: the thread that begins the first step is the one observed; calls from others do
// nothing.
// Lifetime: the objects end what they began, also when an exception passes. Costs no allocation,
// lock or system call after start(). Link with the CMake target stepscope_recorder.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace stepscope {

class PhaseScope {
 public:
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;
  ~PhaseScope();

 private:
  friend class StepScope;
  friend class Run;
  explicit PhaseScope(const char* name);
  uint8_t phase_;
  int exceptions_;
};

class StepScope {
 public:
  StepScope(const StepScope&) = delete;
  StepScope& operator=(const StepScope&) = delete;
  ~StepScope();  // ends the step; failed when an exception passes

  PhaseScope phase(const char* name) { return PhaseScope(name); }
  void samples(uint64_t count);  // how many samples it trained on: for throughput

 private:
  friend class Run;
  StepScope();
  int exceptions_;
};

class Run {
 public:
  Run(Run&& other) noexcept : owner_(other.owner_), why_not_(std::move(other.why_not_)) {
    other.owner_ = false;
  }
  Run& operator=(Run&&) = delete;
  ~Run();  // every record is published; the summary can be written

  StepScope step() { return StepScope(); }
  // Outside any step, such as a last validation.
  PhaseScope phase(const char* name) { return PhaseScope(name); }
  bool recording() const;
  const std::string& why_not() const { return why_not_; }  // one sentence, empty while recording

 private:
  friend Run start();
  Run() = default;
  bool owner_ = false;
  std::string why_not_;
};

// Joins the run that `stepscope run` started this process for. There only, and when it cannot (no
// room in /dev/shm), it says so once on stderr; training goes on either way. A second Run of the
// process records into the same segment.
Run start();

}  // namespace stepscope
