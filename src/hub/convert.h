// Between the model's plain values and hub.proto's messages.
//
// From a message: every field is of a stranger. What can be a value of another size is cut or
// refused here, so that the model's promises hold for whatever was sent: times in order and far from overflow, phases that
// are not negative and add up to the step, names printable and short, counts not negative.
// Thread safety: pure.
#pragma once

#include <optional>

#include "hub/hub.pb.h"
#include "model/history.h"

namespace stepscope::hub {

inline constexpr int64_t kMaxNs = int64_t{1} << 60;  // 36 years; sums of a few cannot overflow
inline constexpr int64_t kMaxCount = int64_t{1} << 53;
inline constexpr size_t kMaxName = 64, kMaxText = 1024, kMaxUserPhasesOfStep = 64, kMaxNotices = 32;

void fill(const StepSample& from, pb::Step& to);
void fill(const MemorySample& from, pb::Memory& to);
void fill(const RankHistory& from, pb::Identity& to);
void fill_totals(const RankHistory& from, pb::Totals& to);
void fill(const Doing& from, pb::Doing& to);
void fill(const RunHistory& run, const NodeHistory* node, pb::NodeState& to);

// None: it breaks a promise that cannot be mended. rank is not set.
std::optional<StepSample> step_of(const pb::Step& from);
std::optional<MemorySample> memory_of(const pb::Memory& from);
std::optional<Doing> doing_of(const pb::Doing& from);
void take_identity(const pb::Identity& from, RankHistory& to);  // but the attempt
// rank's totals = base + last; shift_ns: from the node's clock, that of `last`, to the history's.
void take_totals(const pb::Totals& base, const pb::Totals& last, int64_t shift_ns, RankHistory& to);
void subtract(const pb::Totals& what, pb::Totals& from);     // the occurrences' recent ones stay
void take_node(const pb::NodeState& from, NodeHistory& to);  // but its name
std::string short_text(std::string_view text, size_t max_bytes);  // printable

}  // namespace stepscope::hub
