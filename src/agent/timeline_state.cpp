#include "agent/timeline_state.h"

#include <algorithm>
#include <cstring>

#include "agent/sane.h"
#include "model/facts.h"

namespace stepscope::agent {
namespace {

// Another number whenever a field of the state, or of what it is made of, changes its meaning. What
// changes the size is noticed without it.
constexpr uint32_t kFormat = 3;

struct Header {
  uint32_t format, bytes;
  uint64_t checksum;
};

uint64_t fnv1a(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : bytes) hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  return hash;
}

}  // namespace

bool StepClock::sane() const {
  const Validation& v = validation_;
  const Candidate& c = v.candidate;
  return loaders_.sane() && optimizers_.sane() && boundary_count_ < kProvisional &&
         std::all_of(
             boundaries_.begin(), boundaries_.end(),
             [](const Boundary& b) {
               return is_time(b.t_ns) && is_bool(b.batches.samples_known);
             }) &&
         are_bools(begun_, begin_missed_, has_extra_samples_, optimizer_done_, failed_,
                   optimizer_since_boundary_, backward_since_boundary_, optimizer_seen_,
                   unseen_optimizer_, noted_unseen_, fetch_seen_, batch_since_optimizer_, explicit_,
                   fetch_counts_, fetch_is_candidate_, forward_seen_) &&
         are_bools(v.on, v.by_eval, v.perhaps_teacher, c.known_training, c.exhausted,
                   c.samples_unknown) &&
         are_times(begin_ns_, optimizer_end_ns_, backward_end_ns_, zero_grad_ns_,
                   not_training_since_ns_, loader_start_ns_) &&
         are_times(v.begin_ns, v.first_activity_ns, v.last_activity_ns, v.pending_forward_ns,
                   c.end_ns, c.fetch_ns) &&
         is_depth(input_depth_) && is_depth(forward_depth_) && is_depth(backward_depth_) &&
         is_depth(forward_inside_) && is_depth(step_depth_);
}

bool TimelineState::sane() const {
  constexpr uint32_t kOurs =
      kFactDataLoader | kFactRootModule | kFactExplicitSteps | kFactReadyNotMeasured;
  return clock.sane() && stack.sane() && are_times(last_ns, since_ns, sync_begin_ns) &&
         is_bool(loader_started) && is_bool(loader_seen) && is_bool(sync_together) &&
         is_depth(sync_depth) && (facts & ~kOurs) == 0;
}

std::string save_state(const TimelineState& state) {
  std::string out(sizeof(Header) + sizeof(TimelineState), '\0');
  std::memcpy(out.data() + sizeof(Header), &state, sizeof(TimelineState));
  const Header header{kFormat, sizeof(TimelineState),
                      fnv1a(std::string_view(out).substr(sizeof(Header)))};
  std::memcpy(out.data(), &header, sizeof(Header));
  return out;
}

std::optional<TimelineState> restore_state(std::string_view bytes) {
  if (bytes.size() != sizeof(Header) + sizeof(TimelineState)) return std::nullopt;
  Header header;
  std::memcpy(&header, bytes.data(), sizeof(Header));
  const std::string_view body = bytes.substr(sizeof(Header));
  if (header.format != kFormat || header.bytes != sizeof(TimelineState) ||
      header.checksum != fnv1a(body))
    return std::nullopt;
  TimelineState state;
  std::memcpy(&state, body.data(), sizeof(TimelineState));
  if (!state.sane()) return std::nullopt;
  state.clock.clear();  // decisions are taken within one event
  return state;
}

}  // namespace stepscope::agent
