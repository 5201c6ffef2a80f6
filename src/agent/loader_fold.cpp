#include "agent/loader_fold.h"

#include <algorithm>
#include <utility>

namespace stepscope::agent {
namespace {

using wire::EventCode;

// More is no length of anything here: 12 days in ns, 1 PB.
constexpr uint64_t kMostValue = uint64_t{1} << 50;
constexpr size_t kMostStarted = 1024;

int64_t cut(uint64_t value) { return static_cast<int64_t>(std::min(value, kMostValue)); }
int64_t& at(LoaderSums& sums, LoaderPart part) { return sums[static_cast<size_t>(part)]; }

void add_sums(LoaderSums& to, const LoaderSums& from) {
  constexpr auto kLongest = static_cast<size_t>(LoaderPart::kLongestBatch);
  for (size_t i = 0; i < kLoaderParts; ++i)
    if (i == kLongest)
      to[i] = std::max(to[i], from[i]);
    else
      add_bounded(to[i], from[i]);
}

void add_depth(std::vector<int64_t>& to, size_t depth, int64_t times) {
  depth = std::min(depth, LoaderHistory::kMaxDepth - 1);
  if (to.size() <= depth) to.resize(depth + 1);
  add_bounded(to[depth], times);
}

void add_transform(LoaderHistory& loader, const std::string& name, int64_t ns) {
  auto& known = loader.transform_ns;
  if (known.size() >= LoaderHistory::kMaxTransforms && !known.contains(name)) return;
  add_bounded(known[name], ns);
}

void add_to(LoaderWorker& w, const LoaderWorker& delta) {
  for (auto field : {&LoaderWorker::processes, &LoaderWorker::batches, &LoaderWorker::samples,
                     &LoaderWorker::detail_batches, &LoaderWorker::asked, &LoaderWorker::late_ns,
                     &LoaderWorker::read_bytes, &LoaderWorker::storage_bytes})
    add_bounded(w.*field, delta.*field);
  add_sums(w.sums, delta.sums);
  w.batch_ns.add(delta.batch_ns);
  w.io_seen |= delta.io_seen;
}

}  // namespace

LoaderHistory& LoaderFold::loader(int32_t number) {
  auto& loaders = delta_.loaders;
  if (loaders.size() >= RunHistory::kMaxLoaders && !loaders.contains(number))
    return loaders.rbegin()->second;
  LoaderHistory& made = loaders[number];
  made.loader = number;
  return made;
}

void LoaderFold::push(const ring::EventValue& e, const NameOf& name_of) {
  const int32_t phase = e.phase;
  switch (e.code) {
    case EventCode::kLoader: {
      of_training_ = true;
      LoaderHistory& l = loader(static_cast<int32_t>(e.a & 0xff));
      l.workers = static_cast<int32_t>(e.a >> 8 & 0xffff);
      l.prefetch_factor = static_cast<int32_t>(e.a >> 24 & 0xffff);
      l.batch_size = static_cast<int32_t>(e.a >> 40 & 0xffffff);
      l.flags = e.phase;
      return;
    }
    case EventCode::kLoaderName:
      loader(static_cast<int32_t>(e.a & 0xff)).dataset = name_of(e.phase);
      return;
    case EventCode::kLoaderWorker:
      of_training_ = true;
      if (delta_.started.size() < kMostStarted)
        delta_.started.push_back({static_cast<int32_t>(e.a >> 32 & 0x7fffffff),
                                  static_cast<int32_t>(e.a >> 16 & 0xff),
                                  static_cast<int32_t>(e.a & 0xffff)});
      return;
    case EventCode::kLoaderStarted: {
      LoaderHistory& l = loader(phase);
      add_bounded(l.starts, 1);
      add_bounded(l.start_ns, cut(e.a));
      return;
    }
    case EventCode::kLoaderEpoch:
      of_training_ = true;
      return add_bounded(loader(phase).epochs, 1);
    case EventCode::kLoaderPart:
      if (e.phase < kLoaderParts)
        add_bounded(parts_[e.phase], cut(e.a));
      else if (e.phase >= kFirstUserPhase && e.phase < kFirstUserPhase + kMaxUserPhases) {
        add_bounded(transforms_[e.phase], cut(e.a));
        if (!names_.contains(e.phase)) names_[e.phase] = name_of(e.phase);
      }
      return;
    case EventCode::kLoaderBatches:
      return close_batches(e);
    case EventCode::kLoaderTaken: {
      of_training_ = true;
      LoaderHistory& l = loader(phase);
      const int64_t ns = cut(e.a >> 24);
      add_bounded(l.asked, 1);
      if (e.has(wire::kGradOn)) add_bounded(l.asked_training, 1);
      if (e.has(wire::kReady)) add_bounded(l.ready, 1);
      add_bounded(l.waited_ns, ns);
      l.wait_ns.add(ns);
      add_depth(l.depth, e.a & 0xff, 1);
      if (const auto from = static_cast<int32_t>(e.a >> 8 & 0xffff); from != 0xffff) {
        LoaderWorker& w = l.worker(from);
        add_bounded(w.asked, 1);
        add_bounded(w.late_ns, ns);
      }
      return;
    }
    default:
      return;
  }
}

void LoaderFold::close_batches(const ring::EventValue& e) {
  LoaderHistory& l = loader(e.phase);
  const int64_t batches = static_cast<int64_t>(e.a >> 32);
  for (const LoaderPart part : {LoaderPart::kReceive, LoaderPart::kUnpickle, LoaderPart::kPin})
    add_bounded(at(l.main, part), std::exchange(at(parts_, part), 0));
  for (const auto& [number, ns] : std::exchange(transforms_, {}))
    add_transform(l, names_[number], ns);
  const LoaderSums parts = std::exchange(parts_, {});
  if (batches == 0 && std::all_of(parts.begin(), parts.end(), [](int64_t v) { return v == 0; }))
    return;
  LoaderWorker& w = l.worker(0);
  add_sums(w.sums, parts);
  if (batches == 0) return;
  add_bounded(w.batches, batches);
  add_bounded(w.samples, static_cast<int64_t>(e.a & 0xffffffff));
  if (e.has(wire::kDetailed)) add_bounded(w.detail_batches, batches);
  const int64_t fetch = parts[static_cast<size_t>(LoaderPart::kFetch)];
  const int64_t longest = std::min(fetch, parts[static_cast<size_t>(LoaderPart::kLongestBatch)]);
  w.batch_ns.add(longest);
  if (batches > 1) w.batch_ns.add((fetch - longest) / (batches - 1), batches - 1);
}

LoaderHistory* find_loader(RunHistory& run, int32_t rank, int32_t number) {
  const std::pair wanted{rank, number};
  const auto key = [](const LoaderHistory& l) { return std::pair{l.rank, l.loader}; };
  auto found = std::lower_bound(run.loaders.begin(), run.loaders.end(), wanted,
                                [&](const LoaderHistory& l, const auto& k) { return key(l) < k; });
  if (found != run.loaders.end() && key(*found) == wanted) return &*found;
  const auto of_rank = std::count_if(run.loaders.begin(), run.loaders.end(),
                                     [&](const LoaderHistory& l) { return l.rank == rank; });
  if (of_rank >= static_cast<ptrdiff_t>(RunHistory::kMaxLoaders)) return nullptr;
  found = run.loaders.insert(found, LoaderHistory{});
  found->rank = rank;
  found->loader = number;
  return &*found;
}

void add_to(LoaderHistory& l, const LoaderHistory& delta) {
  if (!delta.dataset.empty()) {
    l.dataset = delta.dataset;
    l.workers = delta.workers;
    l.prefetch_factor = delta.prefetch_factor;
    l.batch_size = delta.batch_size;
    l.flags = delta.flags;
  }
  for (auto field : {&LoaderHistory::starts, &LoaderHistory::start_ns, &LoaderHistory::epochs,
                     &LoaderHistory::asked, &LoaderHistory::asked_training,
                     &LoaderHistory::waited_ns, &LoaderHistory::ready})
    add_bounded(l.*field, delta.*field);
  add_sums(l.main, delta.main);
  l.wait_ns.add(delta.wait_ns);
  for (size_t i = 0; i < delta.depth.size(); ++i) add_depth(l.depth, i, delta.depth[i]);
  for (const auto& [name, ns] : delta.transform_ns) add_transform(l, name, ns);
  for (const LoaderWorker& w : delta.by_worker) add_to(l.worker(w.worker), w);
}

}  // namespace stepscope::agent
