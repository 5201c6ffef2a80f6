#include <algorithm>
#include <array>
#include <cmath>

#include "engine/input_cause.h"
#include "engine/words.h"

namespace stepscope::engine {
namespace {

constexpr std::array<InputCauseRule, 10> kRules = {
    worker_restart, gil_bound,      too_many_workers, handover_bound, slow_worker,
    uneven_samples, slow_transform, storage_bound,    decode_bound,   too_few_workers,
};
constexpr double kWorthSaying = 0.02;
constexpr double kMemoryKept = 0.10;  // of the limit stays free

// Where input has one cause and leaves another part: what the view knows of both.
void add_view(const InputCase& input, InputCause& cause) {
  const LoaderView& v = input.loader;
  const auto add = [&](const char* name, const std::optional<double>& value, const char* unit) {
    if (value) cause.evidence.push_back({name, *value, unit});
  };
  add("workers", input.workers(), "");
  add("batch_ms", v.batch_ms, "ms");
  add("worker_busy_share", v.busy_share, "share");
  if (v.inside) {
    add("transform_share", v.transform_share, "share");
    add("decode_share", v.decode_share, "share");
    add("storage_share", v.storage_share, "share");
    add("collate_share", v.collate_share, "share");
    add("own_share", v.own_share, "share");
    add("handover_share", v.handover_share, "share");
  }
  add("worker_off_cpu_share", v.off_cpu_share, "share");
  add("worker_core_wait_share", v.core_wait_share, "share");
  add("ready_share", v.ready_share, "share");
  add("wait_p95_ms", v.wait_p95_ms, "ms");
}

}  // namespace

double InputCase::saving(double keep, int32_t workers) const {
  const double rest = rest_ms(), batch = batch_ms() * keep;
  if (step_ms <= 0 || batch_ms() <= 0) return 0;
  double step = rest + batch;
  if (workers > 0) {
    double at_once = workers;
    const double computing = std::min(1.0, loader.cpu_share.value_or(1));
    if (cores > 0 && computing > 0)
      at_once = std::min(at_once, std::max(1.0, (cores - 1) / computing));
    step = std::max(rest, batch / at_once);
  }
  return std::clamp(1 - step / step_ms, 0.0, fetch_share);
}

InputCase::Room InputCase::room() const {
  Room room{0, ""};
  if (cores > 0) {
    // One core trains. Workers that mostly wait share the others.
    const double computing = std::clamp(loader.cpu_share.value_or(1), 0.1, 1.0);
    room.workers = std::max(1, static_cast<int32_t>(std::floor((cores - 1) / computing)));
    room.workers = std::min(room.workers, std::max(2, static_cast<int32_t>(4 * cores)));
    room.why = cores_why + ", one of them trains";
    if (computing < 1) room.why += ", and a worker computes " + percent(computing) + " of its time";
  }
  if (memory_left_bytes && worker_bytes && *worker_bytes > 0) {
    const double more = std::max(0.0, *memory_left_bytes * (1 - kMemoryKept)) / *worker_bytes;
    const auto most = workers() + static_cast<int32_t>(std::min(more, 1e6));
    if (room.workers == 0 || most < room.workers) {
      room.workers = most;
      room.why = "a worker takes " + bytes(*worker_bytes) + " and " + bytes(*memory_left_bytes) +
                 " are left";
    }
  }
  return room;
}

std::optional<Advice> more_workers(const InputCase& input) {
  const InputCase::Room room = input.room();
  if (room.workers <= input.workers()) return std::nullopt;
  // As many as are of use, and no more.
  int32_t best = room.workers;
  const double most = input.saving(1, room.workers);
  while (best > input.workers() + 1 && input.saving(1, best - 1) >= most - 0.005) --best;
  if (most < kWorthSaying) return std::nullopt;
  return Advice{"Load in " + plural(best, "worker process", "worker processes") +
                    " a rank (DataLoader num_workers=" + std::to_string(best) + "; it has " +
                    std::to_string(input.workers()) + "): room for " +
                    std::to_string(room.workers) + ", as " + room.why + ".",
                most, "Run again: the share of input falls and samples/s rise.",
                "Storage is at its limit already, or the cores are kept busy by something else."};
}

InputCause input_cause(const InputCase& input) {
  for (const InputCauseRule rule : kRules)
    if (auto cause = rule(input)) {
      add_view(input, *cause);
      return std::move(*cause);
    }
  InputCause unknown{.name = "UNKNOWN", .words = "", .saving = input.fetch_share};
  if (const auto advice = more_workers(input)) unknown.advice.push_back(*advice);
  add_view(input, unknown);
  return unknown;
}

}  // namespace stepscope::engine
