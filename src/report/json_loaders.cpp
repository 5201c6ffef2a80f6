#include "report/json_loaders.h"

#include <boost/json/object.hpp>
#include <cmath>

#include "report/text.h"

namespace stepscope::report {
namespace {

namespace json = boost::json;

json::value number(const std::optional<double>& v) {
  return v && std::isfinite(*v) ? json::value(*v) : json::value(nullptr);
}
// Absent where the making of batches was not seen.
json::value inside(const LoaderRow& row, double v) {
  return row.view.inside ? number(v) : json::value(nullptr);
}

json::object quantiles(const std::optional<double>& p50, const std::optional<double>& p95,
                       const std::optional<double>& p99) {
  return {{"p50", number(p50)}, {"p95", number(p95)}, {"p99", number(p99)}};
}

json::array workers(const LoaderRow& row) {
  json::array out;
  for (const engine::WorkerView& w : row.view.workers) {
    const LoaderWorker& h = *w.history;
    const auto bytes = [&](int64_t count) {
      return h.io_seen ? json::value(count) : json::value(nullptr);
    };
    out.push_back({{"worker", h.worker},
                   {"pid", h.pid > 0 ? json::value(h.pid) : json::value(nullptr)},
                   {"processes", h.processes},
                   {"batches", h.batches},
                   {"samples", h.samples},
                   {"batch_ms", number(w.batch_ms)},
                   {"busy_share", number(w.busy_share)},
                   {"core_wait_share", number(w.core_wait_share)},
                   {"late_share", number(w.late_share)},
                   {"read_bytes", bytes(h.read_bytes)},
                   {"storage_bytes", bytes(h.storage_bytes)}});
  }
  return out;
}

json::object setup(const LoaderHistory& h) {
  return {
      {"num_workers", h.workers},
      {"prefetch_factor", h.workers > 0 ? json::value(h.prefetch_factor) : json::value(nullptr)},
      {"batch_size", h.batch_size > 0 ? json::value(h.batch_size) : json::value(nullptr)},
      {"persistent_workers", h.has(kLoaderPersistent)},
      {"pin_memory", h.has(kLoaderPinned)},
      {"iterable", h.has(kLoaderIterable)},
      {"in_order", !h.has(kLoaderAnyOrder)},
      {"forked", !h.has(kLoaderSpawned)},
      {"dataset_keeps_epoch", h.has(kLoaderOwnEpoch)},
      {"dataset_holds_handles", h.has(kLoaderHandles)}};
}

json::object loader(const LoaderRow& row) {
  const LoaderHistory& h = *row.history;
  const engine::LoaderView& v = row.view;
  json::object shares{{"transforms", inside(row, v.transform_share)},
                      {"decode", inside(row, v.decode_share)},
                      {"open", inside(row, v.open_share)},
                      {"collate", inside(row, v.collate_share)},
                      {"own", inside(row, v.own_share)}};
  json::object processor{{"computing", number(v.cpu_share)},
                         {"no_core", number(v.core_wait_share)},
                         {"waiting", number(v.off_cpu_share)}};
  json::array transforms;
  for (const engine::NamedShare& t : v.transforms)
    transforms.push_back({{"name", json::value(valid_utf8(t.name))},
                          {"share", number(t.share)},
                          {"ms_per_batch", number(t.ms)}});
  json::object handover{{"share", inside(row, v.handover_share)},
                        {"pickle_ms", inside(row, v.pickle_ms)},
                        {"receive_ms", number(v.receive_ms)},
                        {"unpickle_ms", number(v.unpickle_ms)},
                        {"pin_ms", number(v.pin_ms)},
                        {"pipe_bytes_per_batch", inside(row, v.bytes_per_batch)},
                        {"shared_bytes_per_batch", inside(row, v.shared_bytes_per_batch)}};
  json::object files{{"opens_per_batch", inside(row, v.opens_per_batch)},
                     {"read_bytes_per_batch", number(v.read_bytes_per_batch)},
                     {"storage_bytes_per_batch", number(v.storage_bytes_per_batch)},
                     {"faults_per_batch", inside(row, v.faults_per_batch)},
                     {"major_faults_per_batch", inside(row, v.major_faults_per_batch)}};
  const bool taken = h.asked > 0;
  json::object waiting{{"measured", taken},
                       {"batches", h.asked},
                       {"ready_share", number(v.ready_share)},
                       {"ms", quantiles(v.wait_p50_ms, v.wait_p95_ms, v.wait_p99_ms)},
                       {"depth_p05", number(v.depth_p05)},
                       {"depth_p50", number(v.depth_p50)}};
  return {{"rank", h.rank},
          {"loader", h.loader},
          {"dataset", json::value(valid_utf8(h.dataset))},
          {"training", row.training},
          {"setup", setup(h)},
          {"measured", v.inside},
          {"epochs", h.epochs},
          {"worker_starts", h.starts},
          {"worker_start_ms", h.starts > 0 ? json::value(static_cast<double>(h.start_ns) / 1e6 /
                                                         static_cast<double>(h.starts))
                                           : json::value(nullptr)},
          {"batches", static_cast<int64_t>(v.batches)},
          {"samples", static_cast<int64_t>(v.samples)},
          {"batch_ms", number(v.batch_ms)},
          {"batch_ms_quantiles", quantiles(v.batch_p50_ms, v.batch_p95_ms, v.batch_p99_ms)},
          {"busy_share", number(v.busy_share)},
          {"shares", std::move(shares)},
          {"transforms", std::move(transforms)},
          {"processor", std::move(processor)},
          {"storage_share", inside(row, v.storage_share)},
          {"handover", std::move(handover)},
          {"files", std::move(files)},
          {"waiting", std::move(waiting)},
          {"workers", workers(row)}};
}

}  // namespace

json::array loaders_json(const Summary& summary) {
  json::array out;
  for (const LoaderRow& row : summary.loaders) out.push_back(loader(row));
  return out;
}

}  // namespace stepscope::report
