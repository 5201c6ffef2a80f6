#include "engine/loader_view.h"

#include <algorithm>

namespace stepscope::engine {
namespace {

constexpr double kThroughPipe = 64 * 1024;  // bytes a batch: more is data, not descriptors

double of(int64_t part, double whole) {
  return whole > 0 ? std::clamp(static_cast<double>(part) / whole, 0.0, 1.0) : 0;
}

std::optional<double> ms(const std::optional<double>& ns) {
  return ns ? std::optional(*ns / 1e6) : std::nullopt;
}

std::optional<double> depth_quantile(const std::vector<int64_t>& depth, double q) {
  int64_t all = 0;
  for (const int64_t times : depth) all += times;
  if (all == 0) return std::nullopt;
  double left = q * static_cast<double>(all);
  for (size_t n = 0; n < depth.size(); ++n) {
    if (left <= static_cast<double>(depth[n])) return static_cast<double>(n);
    left -= static_cast<double>(depth[n]);
  }
  return static_cast<double>(depth.size() - 1);
}

}  // namespace

LoaderView::LoaderView(const LoaderHistory& l) : history(&l) {
  using enum LoaderPart;
  batches = static_cast<double>(l.batches());
  samples = static_cast<double>(l.samples());
  const double fetch = static_cast<double>(l.sum(kFetch));
  const double detail = static_cast<double>(l.sum(kDetailFetch));
  inside = batches > 0 && fetch > 0;
  const auto per_batch = [&](int64_t sum) {
    return batches > 0 ? static_cast<double>(sum) / batches : 0;
  };
  DurationBins lengths;
  for (const LoaderWorker& w : l.by_worker) lengths.add(w.batch_ns);
  if (inside) {
    batch_ms = per_batch(l.sum(kFetch)) / 1e6;
    batch_p50_ms = ms(lengths.quantile(0.5));
    batch_p95_ms = ms(lengths.quantile(0.95));
    batch_p99_ms = ms(lengths.quantile(0.99));
    const double wait = static_cast<double>(l.sum(kWait));
    if (l.workers > 0) busy_share = fetch / (fetch + wait);
  }
  collate_share = of(l.sum(kCollate), detail);
  decode_share = of(l.sum(kDecode), detail);
  open_share = of(l.sum(kOpen), detail);
  double transforming = 0;
  for (const auto& [name, ns] : l.transform_ns) {
    const double share = of(ns, detail);
    transforms.push_back({name, share, share * batch_ms.value_or(0)});
    transforming += share;
  }
  transform_share = std::min(1.0, transforming);
  std::stable_sort(transforms.begin(), transforms.end(),
                   [](const auto& a, const auto& b) { return a.share > b.share; });
  own_share = inside && detail > 0
                  ? std::max(0.0, 1 - collate_share - decode_share - open_share - transform_share)
                  : 0;
  threads = detail > 0 ? static_cast<double>(l.sum(kOtherThreads)) / detail : 0;
  storage_share = open_share;
  if (l.workers > 0 && inside && l.sum(kCpu) > 0) {
    const double cpu = static_cast<double>(std::max<int64_t>(0, l.sum(kCpu) - l.sum(kPickle)));
    cpu_share = cpu / fetch;  // over 1 with threads
    core_wait_share = of(l.sum(kCoreWait), fetch);
    off_cpu_share = std::max(0.0, 1 - std::min(1.0, *cpu_share) - *core_wait_share);
    storage_share =
        std::max(open_share, std::min(*off_cpu_share, own_share + open_share + decode_share));
  }

  const double taken = static_cast<double>(std::max<int64_t>(l.asked, 1));
  pickle_ms = per_batch(l.sum(kPickle)) / 1e6;
  const auto main_ms = [&](LoaderPart part) {
    return static_cast<double>(l.main[static_cast<size_t>(part)]) / taken / 1e6;
  };
  receive_ms = main_ms(kReceive);
  unpickle_ms = main_ms(kUnpickle);
  pin_ms = main_ms(kPin);
  bytes_per_batch = per_batch(l.sum(kPickleBytes));
  shared_bytes_per_batch = per_batch(l.sum(kSharedBytes));
  // Making a tensor of shared memory asks its worker for the descriptor: the time of that is of a
  // worker that is busy, and not of handing over.
  const double objects_ms = bytes_per_batch >= kThroughPipe ? unpickle_ms : 0;
  const double over_ms = pickle_ms + receive_ms + objects_ms;
  if (const double whole = batch_ms.value_or(0) + over_ms; whole > 0)
    handover_share = (collate_share * batch_ms.value_or(0) + over_ms) / whole;
  const double detail_batches =
      fetch > 0 ? batches * detail / fetch : 0;  // opens are counted in these
  if (detail_batches > 0) opens_per_batch = static_cast<double>(l.sum(kOpens)) / detail_batches;
  faults_per_batch = per_batch(l.sum(kFaults));
  major_faults_per_batch = per_batch(l.sum(kMajorFaults));
  int64_t read = 0, stored = 0;
  bool io_seen = false;
  for (const LoaderWorker& w : l.by_worker) {
    io_seen |= w.io_seen;
    read += w.read_bytes;
    stored += w.storage_bytes;
  }
  if (io_seen && batches > 0) {
    read_bytes_per_batch = per_batch(read);
    storage_bytes_per_batch = per_batch(stored);
  }

  wait_p50_ms = ms(l.wait_ns.quantile(0.5));
  wait_p95_ms = ms(l.wait_ns.quantile(0.95));
  wait_p99_ms = ms(l.wait_ns.quantile(0.99));
  if (l.asked > 0) ready_share = of(l.ready, static_cast<double>(l.asked));
  depth_p05 = depth_quantile(l.depth, 0.05);
  depth_p50 = depth_quantile(l.depth, 0.5);
  for (const LoaderWorker& w : l.by_worker) {
    WorkerView& view = workers.emplace_back();
    view.history = &w;
    const double own_fetch = static_cast<double>(w[kFetch]);
    if (w.batches > 0) view.batch_ms = own_fetch / static_cast<double>(w.batches) / 1e6;
    if (l.workers > 0 && own_fetch > 0) {
      view.busy_share = own_fetch / (own_fetch + static_cast<double>(w[kWait]));
      view.core_wait_share = of(w[kCoreWait], own_fetch);
    }
    view.late_share = of(w.late_ns, static_cast<double>(l.waited_ns));
  }
}

// What training waited for; one that loads in the training process is waited for all the time.
const LoaderHistory* training_loader(const RunHistory& run, int32_t rank) {
  const LoaderHistory* best = nullptr;
  int64_t most = -1;
  for (const LoaderHistory& l : run.loaders) {
    if (l.rank != rank) continue;
    const int64_t waited = l.workers == 0         ? l.sum(LoaderPart::kFetch)
                           : l.asked_training > 0 ? l.waited_ns
                                                  : 0;
    if (waited <= most) continue;
    most = waited;
    best = &l;
  }
  return best;
}

}  // namespace stepscope::engine
