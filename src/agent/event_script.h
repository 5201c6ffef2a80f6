// For tests: the events that a recorder would write, told in words. A word is ten ns after the one
// before it, and where it is a begin and an end, the end is five ns later:
//   it L, end L        iterator of loader L made; its StopIteration
//   get L              a batch of 8 samples (`unsized`: not known how many)
//   fwd, fwd eval      root forward in training mode; in eval mode
//   bwd, zero          backward (`reduced`: it waited for others, since 4 ns if also `ready`);
//                      zero_grad
//   opt A, skip        optimizer step; GradScaler skipped it
//   eval, train        called on a root
//   step( .. )step     trace_step
//   sync G             a wait for process group G
//   span P, cancel P   phase P: a built-in name or a number. begin P .. end_phase P
//   profile on|off, samples N, resumed, thread (another one takes over)
//   wait N             N ns pass
//   lost N             N events were dropped before the next one
// `get(`, `)get` and so on are the begin and the end alone. `off` behind it, get, fwd: gradients
// off. `raise` behind get, fwd, bwd, )step: left by an exception. Names are one letter.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "model/phase.h"
#include "ring/reader.h"

namespace stepscope::agent {

class EventScript {
 public:
  explicit EventScript(const std::string& text = "") { play(text); }

  EventScript& play(const std::string& text) {
    std::stringstream words(text);
    for (std::string event; std::getline(words, event, ';');) {
      std::stringstream parts(event);
      Words word;
      parts >> word.verb;
      for (std::string part; parts >> part;) word.rest.push_back(part);
      if (!word.verb.empty()) one(word);
    }
    return *this;
  }

  std::vector<ring::EventValue> events;
  int64_t now_ns = 1'000;

 private:
  using Code = wire::EventCode;
  struct Words {
    std::string verb;
    std::vector<std::string> rest;

    bool has(const char* word) const {
      return std::find(rest.begin(), rest.end(), word) != rest.end();
    }
    uint64_t number() const { return rest.empty() ? 0 : std::stoull(rest[0]); }
    // k7: the seventh sync point of the only group
    uint64_t sync() const {
      for (const std::string& word : rest)
        if (word.size() > 1 && word[0] == 'k')
          return wire::pack_sync(1, static_cast<uint32_t>(std::stoul(word.substr(1))));
      return 0;
    }
    uint64_t id() const { return rest.empty() ? 0 : static_cast<uint64_t>(rest[0][0]); }
    int grad() const { return has("off") ? 0 : wire::kGradOn; }
    int raised() const { return has("raise") ? wire::kRaised : 0; }
    uint64_t samples() const { return has("unsized") ? wire::kUnmeasured : 8; }
    uint8_t phase() const {
      if (const auto built_in = phase_from_name(rest.at(0))) return static_cast<uint8_t>(*built_in);
      return static_cast<uint8_t>(number());
    }
  };

  void add(Code code, uint64_t a = 0, int flags = 0, uint8_t phase = 0, int64_t later_ns = 0) {
    events.push_back({.index = events.size(),
                      .t_ns = now_ns + later_ns,
                      .a = a,
                      .code = code,
                      .phase = phase,
                      .flags = static_cast<uint8_t>(flags),
                      .missing = std::exchange(missing_, 0)});
  }
  void end(Code code, uint64_t a = 0, int flags = 0, uint8_t phase = 0) {
    add(code, a, flags, phase, 5);
  }

  void one(const Words& w) {
    now_ns += 10;
    if (!input(w) && !compute(w) && !other(w)) ADD_FAILURE() << "no such event: " << w.verb;
  }

  bool input(const Words& w) {
    if (w.verb == "it")
      add(Code::kIterBegin, w.id(), w.grad()), end(Code::kIterEnd);
    else if (w.verb == "get" || w.verb == "get(")
      add(Code::kFetchBegin, w.id(), w.grad());
    else if (w.verb == "end")
      add(Code::kFetchBegin, w.id(), w.grad()),
          end(Code::kFetchEnd, wire::kUnmeasured, wire::kExhausted);
    else if (w.verb == ")get")
      add(Code::kFetchEnd, w.samples());
    else if (w.verb == "samples")
      add(Code::kSamples, w.number());
    else
      return false;
    if (w.verb == "get") end(Code::kFetchEnd, w.samples(), w.raised());
    return true;
  }

  bool compute(const Words& w) {
    const int mode = w.grad() | (w.has("eval") || w.has("off") ? 0 : wire::kTrainingMode);
    const int reduced = w.raised() | (w.has("reduced") ? wire::kReduced : 0);
    const uint64_t ready = w.has("ready") ? static_cast<uint64_t>(now_ns + 1) : 0;
    if (w.verb == "fwd")
      add(Code::kForwardBegin, 0, mode), end(Code::kForwardEnd, 0, w.raised());
    else if (w.verb == "fwd(")
      add(Code::kForwardBegin, 0, mode);
    else if (w.verb == ")fwd")
      add(Code::kForwardEnd, 0, w.raised());
    else if (w.verb == "bwd")
      add(Code::kBackwardBegin, w.sync()), end(Code::kBackwardEnd, ready, reduced);
    else if (w.verb == "bwd(")
      add(Code::kBackwardBegin, w.sync());
    else if (w.verb == ")bwd")
      add(Code::kBackwardEnd, ready, reduced);
    else if (w.verb == "recomputed")
      add(Code::kRecomputed, w.number());
    else if (w.verb == "opt")
      add(Code::kOptimizerBegin, w.id()), end(Code::kOptimizerEnd, w.id());
    else if (w.verb == "opt(")
      add(Code::kOptimizerBegin, w.id());
    else if (w.verb == ")opt")
      add(Code::kOptimizerEnd, w.id());
    else if (w.verb == "skip")
      add(Code::kOptimizerSkipped);
    else if (w.verb == "zero")
      add(Code::kZeroGrad);
    else
      return false;
    return true;
  }

  bool other(const Words& w) {
    const int together = w.has("alone") ? 0 : wire::kTogether;
    if (w.verb == "eval")
      add(Code::kEvalCalled);
    else if (w.verb == "train")
      add(Code::kTrainCalled);
    else if (w.verb == "step(")
      add(Code::kStepEnter);
    else if (w.verb == ")step")
      add(Code::kStepExit, 0, w.raised());
    else if (w.verb == "sync")
      add(Code::kSyncBegin, w.sync(), together), end(Code::kSyncEnd);
    else if (w.verb == "sync(")
      add(Code::kSyncBegin, w.sync(), together);
    else if (w.verb == ")sync")
      add(Code::kSyncEnd);
    else if (w.verb == "span")
      add(Code::kPhaseBegin, 0, 0, w.phase()), end(Code::kPhaseEnd, 0, w.raised(), w.phase());
    else if (w.verb == "begin")
      add(Code::kPhaseBegin, 0, 0, w.phase());
    else if (w.verb == "end_phase")
      add(Code::kPhaseEnd, 0, w.raised(), w.phase());
    else if (w.verb == "cancel")
      add(Code::kPhaseCancel, 0, 0, w.phase());
    else if (w.verb == "profile")
      add(Code::kProfilerWindow, 0, w.has("on") ? wire::kOpen : 0);
    else if (w.verb == "resumed")
      add(Code::kResumed);
    else if (w.verb == "thread")
      add(Code::kResumed, wire::kOtherThread);
    else if (w.verb == "wait")
      now_ns += static_cast<int64_t>(w.number());
    else if (w.verb == "lost")
      missing_ = static_cast<uint32_t>(w.number());
    else
      return false;
    return true;
  }

  uint32_t missing_ = 0;
};

inline std::string repeat(int n, const std::string& text) {
  std::string all;
  for (int i = 0; i < n; ++i) all += text + ";";
  return all;
}

}  // namespace stepscope::agent
