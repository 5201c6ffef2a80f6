// STORAGE_BOUND: the workers wait for what they open and read, and compute little (D03). Says what
// packing into larger files could gain at most, from the share measured, which may be nothing (D04).
#include <algorithm>

#include "engine/input_cause.h"
#include "engine/words.h"

namespace stepscope::engine {
namespace {

constexpr double kMost = 0.5;
constexpr double kSmallFile = 256 * 1024;

// In the training process the kernel is not asked: what it neither kept a core busy with nor lacked
// one for, it waited for.
double storage_share(const InputCase& input) {
  const LoaderView& v = input.loader;
  if (v.history->workers > 0 || !input.train_cores || input.fetch_share <= 0)
    return v.storage_share;
  const double running = *input.train_cores + input.train_core_wait_share.value_or(0);
  const double waited = std::max(0.0, 1 - running / input.fetch_share);
  return std::max(v.storage_share, std::min(waited, v.own_share + v.open_share + v.decode_share));
}

}  // namespace

std::optional<InputCause> storage_bound(const InputCase& input) {
  const LoaderView& v = input.loader;
  const double share = v.inside ? storage_share(input) : 0;
  if (share < kMost) return std::nullopt;
  InputCause cause{.name = "STORAGE_BOUND",
                   .words = "opening and reading take " + percent(share) + " of the time to load",
                   .saving = input.saving(1 - share)};
  cause.evidence = {{"read_share", share, "share"},
                    {"open_share", v.open_share, "share"},
                    {"opens_per_batch", v.opens_per_batch, "files"},
                    {"major_faults_per_batch", v.major_faults_per_batch, ""}};
  const bool sized = v.read_bytes_per_batch && v.opens_per_batch > 0;
  const double file = sized ? *v.read_bytes_per_batch / v.opens_per_batch : 0;
  if (v.read_bytes_per_batch)
    cause.evidence.push_back({"read_bytes_per_batch", *v.read_bytes_per_batch, "bytes"});
  if (sized) cause.evidence.push_back({"bytes_per_file", file, "bytes"});
  // Waiting is what more workers hide without a core each.
  if (const auto more = more_workers(input)) cause.advice.push_back(*more);
  if (v.opens_per_batch >= 1 && (!sized || file < kSmallFile))
    cause.advice.push_back(
        {"Pack the files into fewer, larger ones (tar shards, LMDB, HDF5, memory-mapped arrays)" +
             std::string(sized ? ": they have " + bytes(file) + " each." : "."),
         cause.saving, "stepscope inspect data PATH: compare files one by one with packed.",
         "The storage's bandwidth is the limit, or what is read is computed as it is read: "
         "opening takes " +
             percent(v.open_share) + " of the time."});
  cause.advice.push_back({"Copy the data to a local disk or into memory before training.",
                          cause.saving, "Run again: worker_off_cpu_share falls.",
                          "It does not fit, or each sample is read once."});
  return cause;
}

}  // namespace stepscope::engine
