// For tests of StepClock. Scenarios in words. Each word is one event, ten ns after the one before it:
//   it L, end L        iterator of loader L made; its StopIteration
//   get L              a batch of 8 samples (`unsized`: not known how many)
//   fwd, fwd eval      root forward in training mode; in eval mode
//   bwd, zero          backward; zero_grad
//   opt A, skip        optimizer step; GradScaler skipped it. opt( A .. )opt A: with a closure
//   eval, train        called on a root
//   step( .. )step     trace_step
// `off` behind it, get, fwd: gradients off. `raise` behind get, fwd, bwd, )step: left by an
// exception. A step is told as fetches/backwards/optimizer steps, with +n for n skipped, ! for
// failed, * for explicit.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "agent/step_clock.h"

namespace stepscope::agent {

class Scenario {
 public:
  explicit Scenario(const std::string& text) { play(text); }

  Scenario& play(const std::string& text) {
    std::stringstream events(text);
    for (std::string event; std::getline(events, event, ';');) {
      std::stringstream words(event);
      std::string verb, word;
      std::vector<std::string> rest;
      words >> verb;
      while (words >> word) rest.push_back(word);
      if (!verb.empty()) one(verb, rest);
    }
    return *this;
  }

  std::string steps() const {
    std::string text;
    for (const ClosedStep& s : steps_) {
      text += (text.empty() ? "" : " ") + std::to_string(s.counts.fetches) + "/" +
              std::to_string(s.counts.backwards) + "/" + std::to_string(s.counts.optimizer_steps);
      if (s.counts.skipped_steps > 0) text += "+" + std::to_string(s.counts.skipped_steps);
      if (s.flags & kStepFailed) text += "!";
      if (s.flags & kStepExplicit) text += "*";
    }
    return text;
  }
  // Begin and end of each step, as numbers of events (the first is 1).
  std::string times() const {
    std::string text;
    for (const ClosedStep& s : steps_)
      text += (text.empty() ? "" : " ") + std::to_string(s.begin_ns / 10) + "-" +
              std::to_string(s.end_ns / 10);
    return text;
  }
  std::string validations() const {
    std::string text;
    for (const auto& [begin, end] : validations_)
      text +=
          (text.empty() ? "" : " ") + std::to_string(begin / 10) + "-" + std::to_string(end / 10);
    return text;
  }
  const std::vector<ClosedStep>& closed() const { return steps_; }
  StepClock& clock() { return clock_; }
  int dropped_optimizers() const { return dropped_; }
  std::string kinds;  // of the fetches: T training, n not, . nested

 private:
  static uint64_t id(const std::string& name) { return std::hash<std::string>{}(name) | 1; }

  void one(const std::string& verb, const std::vector<std::string>& rest) {
    now_ += 10;
    const std::string first = rest.empty() ? "" : rest[0];
    const auto has = [&](const char* word) {
      return std::find(rest.begin(), rest.end(), word) != rest.end();
    };
    if (verb == "it")
      clock_.iter_begin(id(first), !has("off"), now_), clock_.iter_end();
    else if (verb == "get" || verb == "end") {
      fetch_begin(first, has("off"));
      const FetchEnd how = verb == "end"  ? FetchEnd::kExhausted
                           : has("raise") ? FetchEnd::kRaised
                                          : FetchEnd::kBatch;
      clock_.fetch_end(how, has("unsized") ? wire::kUnmeasured : 8, now_ + 5);
    } else if (verb == "get(")
      fetch_begin(first, has("off"));
    else if (verb == ")get")
      clock_.fetch_end(FetchEnd::kBatch, 8, now_);
    else if (verb == "fwd") {
      clock_.forward_begin(!has("off"), !has("eval") && !has("off"), now_);
      clock_.forward_end(has("raise"), now_ + 5);
    } else if (verb == "fwd(")
      clock_.forward_begin(true, true, now_);
    else if (verb == ")fwd")
      clock_.forward_end(has("raise"), now_);
    else if (verb == "bwd")
      clock_.backward_begin(now_), clock_.backward_end(has("raise"), now_ + 5);
    else if (verb == "bwd(")
      clock_.backward_begin(now_);
    else if (verb == ")bwd")
      clock_.backward_end(has("raise"), now_);
    else if (verb == "opt")
      clock_.optimizer_begin(id(first), now_), clock_.optimizer_end(id(first), now_ + 5);
    else if (verb == "opt(")
      clock_.optimizer_begin(id(first), now_);
    else if (verb == ")opt")
      clock_.optimizer_end(id(first), now_);
    else if (verb == "skip")
      clock_.optimizer_skipped(now_);
    else if (verb == "zero")
      clock_.zero_grad(now_);
    else if (verb == "eval")
      clock_.eval_called(now_);
    else if (verb == "train")
      clock_.train_called(now_);
    else if (verb == "step(")
      clock_.enter_step(now_);
    else if (verb == ")step")
      clock_.exit_step(has("raise"), now_);
    else if (verb == "wait")
      now_ += 10'000'000;
    else
      ADD_FAILURE() << "no such event: " << verb;
    take();
  }

  void fetch_begin(const std::string& loader, bool off) {
    const FetchKind kind = clock_.fetch_begin(id(loader), !off, now_);
    kinds += kind == FetchKind::kTraining ? 'T' : kind == FetchKind::kNested ? '.' : 'n';
  }

  void take() {
    const Decided& d = clock_.decided();
    if (!d.any) {
      EXPECT_EQ(d.steps, 0u);
      return;
    }
    dropped_ += d.dropped_optimizers;
    if (d.validation_ended) validations_.emplace_back(d.validation_begin_ns, d.validation_end_ns);
    for (size_t i = 0; i < d.steps; ++i) {
      const ClosedStep& s = d.step[i];
      EXPECT_EQ(s.step, steps_.size());
      EXPECT_LE(s.begin_ns, s.end_ns);
      EXPECT_LE(s.end_ns, now_);
      if (!steps_.empty()) {
        EXPECT_EQ(s.begin_ns, steps_.back().end_ns);
      }
      steps_.push_back(s);
    }
    clock_.clear();
  }

  StepClock clock_;
  int64_t now_ = 0;
  int dropped_ = 0;
  std::vector<ClosedStep> steps_;
  std::vector<std::pair<int64_t, int64_t>> validations_;
};

inline std::string repeat(int n, const std::string& text) {
  std::string all;
  for (int i = 0; i < n; ++i) all += text + ";";
  return all;
}
inline std::string epoch(int batches) {
  return "it L;" + repeat(batches, "get L; zero; fwd; bwd; opt A") + "end L;";
}

}  // namespace stepscope::agent
