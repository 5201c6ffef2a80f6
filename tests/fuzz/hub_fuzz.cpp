// What a node sends, against hostile bytes: messages of hub.proto, and what a run becomes of them.
// An input is a list of messages, each after its length (16 bits); the first byte of each says what
// it is:
//
//   even   an update of node (byte >> 1) % 4
//   odd    1: the hub is killed and reads its own state again   3: that state is these bytes
//          5: the run is looked at                              else: a join with these bytes
// Whatever comes in, the history must keep its promises (check_*).
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "hub/convert.h"
#include "hub/delta.h"
#include "hub/job.h"

namespace {

using namespace stepscope;

void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

void check_run(const hub::Job& job) {
  int32_t last = -1;
  for (const RankHistory& rank : job.run().ranks) {
    check(rank.rank > last && rank.rank < 1'000'000, "ranks in order and in range");
    last = rank.rank;
    check(rank.raw.size() <= RankHistory::kMaxRaw && rank.memory.size() <= RankHistory::kMaxMemory,
          "bounded");
    check(rank.world_size >= 1, "world size");
    for (const StepSample& step : rank.raw) {
      check(step.rank == rank.rank && step.step >= 0 && step.end_ns >= step.begin_ns, "a step");
      int64_t sum_ns = 0;
      for (const int64_t ns : step.phase_ns) {
        check(ns >= 0, "a phase is not negative");
        sum_ns += ns;
      }
      for (const auto& [name, ns] : step.user_phase_ns) sum_ns += ns;
      check(sum_ns == step.total_ns(), "phases add up to the step");
      check(step.syncs.size() <= StepSample::kMaxSyncs, "syncs bounded");
    }
    (void)rank.steady_blocks();
  }
  check(job.lost_steps() >= 0, "lost");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto job = std::make_unique<hub::Job>(RunHistory{});
  int64_t now_ns = 0;
  for (int i = 0; i < 4; ++i) {
    hub::pb::Join join;
    join.set_node("n");
    join.set_instance(std::to_string(i));
    (void)job->join(join, now_ns);
  }
  for (int messages = 0; messages < 64 && size >= 3; ++messages) {
    const size_t length = std::min<size_t>(data[0] | static_cast<size_t>(data[1]) << 8, size - 3);
    const uint8_t kind = data[2];
    const std::string bytes(reinterpret_cast<const char*>(data) + 3, length);
    data += 3 + length;
    size -= 3 + length;
    now_ns += 1'000'000'000;
    hub::pb::ToHub message;
    if (kind % 2 == 0) {
      if (message.mutable_update()->ParseFromString(bytes))
        (void)job->update((kind >> 1) % std::min<size_t>(job->node_count(), 4), message.update(),
                          now_ns);
    } else if (kind == 1) {
      RunHistory run = job->run();
      job = std::make_unique<hub::Job>(std::move(run), job->stored(), now_ns);
      if (job->node_count() == 0) return 0;
    } else if (kind == 3) {
      RunHistory run = job->run();
      job = std::make_unique<hub::Job>(std::move(run), std::vector<std::string>{bytes, bytes},
                                       now_ns);
      if (job->node_count() == 0) return 0;
    } else if (kind == 5) {
      job->refresh(now_ns);
      (void)job->is_over(now_ns);
    } else if (message.mutable_join()->ParseFromString(bytes)) {
      (void)job->join(message.join(), now_ns);
    }
  }
  job->refresh(now_ns);
  check_run(*job);
  // What a node of that history would send is taken by another hub.
  hub::Delta delta;
  hub::Job other(RunHistory{});
  hub::pb::Join join;
  join.set_instance("i");
  const auto node = other.join(join, 0);
  const auto next = delta.next(job->run(), true);
  (void)other.update(*node, next.message.update(), 0);
  check_run(other);
  return 0;
}
