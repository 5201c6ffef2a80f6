// What a node sends, against hostile bytes: messages of hub.proto, and what a run becomes of them; the handshake from
// both sides.
// An input is a list of messages, each after its length (16 bits); the first byte of each says what
// it is:
//
//   even   an update of node (byte >> 1) % 4
//   odd    1: the hub is killed and reads its own state again   3: that state is these bytes
//          5: the run is looked at
//          9: a stranger greets the hub with these bytes   11: a node that connected is answered with them
//          13: the hub says that it has this of the node   else: a join with these bytes
// A stranger's bytes are two messages, the first as long as the first byte says.
// Whatever comes in, the history must keep its promises (check_*).
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "hub/convert.h"
#include "hub/delta.h"
#include "hub/handshake.h"
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

// What a peer says, without a network. Whatever is answered must be a message.
class Script final : public hub::Channel {
 public:
  explicit Script(const std::string& bytes) {
    const size_t first = bytes.empty() ? 0 : static_cast<uint8_t>(bytes[0]);
    if (bytes.size() > 1) said_.push_back(bytes.substr(1, first));
    if (bytes.size() > 1 + first) said_.push_back(bytes.substr(1 + first));
  }
  boost::asio::awaitable<Status> accept() override { co_return ok(); }
  boost::asio::awaitable<Status> connect(const hub::Endpoint&) override { co_return ok(); }
  boost::asio::awaitable<Result<std::string>> read() override {
    if (next_ >= said_.size()) co_return Error{"it hung up", ""};
    co_return said_[next_++];
  }
  void send(std::string message) override {
    check(hub::parse_to_node(message) || hub::parse_to_hub(message), "an answer is a message");
  }
  size_t queued_bytes() const override { return 0; }
  void limit_message(size_t) override {}
  boost::asio::awaitable<void> finish() override { co_return; }
  void close() override {}

 private:
  std::vector<std::string> said_;
  size_t next_ = 0;
};

// Nobody proves a token without knowing it.
void greet(const std::string& bytes, bool at_hub) {
  static const hub::Token token{"a token of more than sixteen bytes"};
  boost::asio::io_context io;
  const auto channel = std::make_shared<Script>(bytes);
  hub::Handshake out;
  boost::asio::co_spawn(
      io,
      [&]() -> boost::asio::awaitable<void> {
        out = at_hub ? co_await hub::greet_node(channel, token)
                     : co_await hub::greet_hub(channel, token);
      },
      boost::asio::detached);
  io.run();
  check(!out.done && !out.problem.empty(), "a stranger is refused with a reason");
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
    } else if (kind == 9 || kind == 11) {
      greet(bytes, kind == 9);
    } else if (kind == 13) {
      hub::Delta delta;
      if (const auto told = hub::parse_to_node(bytes)) delta.reset(told->have());
      (void)delta.next(job->run(), true);
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
