#include "agent/loader_join.h"

#include <algorithm>

#include "sampler/proc.h"

namespace stepscope::agent {

void LoaderJoin::remember(int32_t pid, Place place) {
  if (!places_.contains(pid)) pids_.push_back(pid);
  places_[pid] = place;
  if (pids_.size() <= kMostPids) return;
  places_.erase(pids_.front());
  pids_.pop_front();
}

// After a restart of the agent only the history knows.
LoaderJoin::Place* LoaderJoin::place_of(int32_t pid, const RunHistory& run) {
  if (const auto known = places_.find(pid); known != places_.end()) return &known->second;
  for (const LoaderHistory& l : run.loaders)
    for (const LoaderWorker& w : l.by_worker)
      if (w.pid == pid && l.workers > 0) {
        remember(pid, {.rank = l.rank,
                       .loader = l.loader,
                       .worker = w.worker,
                       .read_bytes = std::nullopt,
                       .storage_bytes = std::nullopt});
        return &places_[pid];
      }
  return nullptr;
}

void LoaderJoin::add_training(LoaderFold& fold, int32_t pid, int32_t rank, RunHistory& run) {
  const LoaderDelta delta = fold.take();
  for (const auto& [number, part] : delta.loaders) {
    LoaderHistory* l = find_loader(run, rank, number);
    if (l == nullptr) continue;
    add_to(*l, part);
    if (l->workers == 0 && !l->by_worker.empty()) l->worker(0).pid = pid;
  }
  for (const StartedWorker& started : delta.started) {
    LoaderHistory* l = find_loader(run, rank, started.loader);
    if (l == nullptr) continue;
    LoaderWorker& w = l->worker(started.worker);
    w.pid = started.pid;
    add_bounded(w.processes, 1);
    remember(started.pid, {.rank = rank, .loader = started.loader, .worker = started.worker});
  }
}

void LoaderJoin::add(LoaderFold& fold, int32_t pid, std::optional<int32_t> rank, RunHistory& run) {
  if (!fold.of_worker()) {
    if (rank) add_training(fold, pid, *rank, run);
    return;
  }
  const Place* place = place_of(pid, run);
  if (place == nullptr) return;
  LoaderHistory* l = find_loader(run, place->rank, place->loader);
  const LoaderDelta delta = fold.take();
  if (l == nullptr) return;
  for (const auto& [number, part] : delta.loaders) {
    LoaderHistory moved = part;
    for (LoaderWorker& w : moved.by_worker) w.worker = place->worker;
    add_to(*l, moved);
  }
}

void LoaderJoin::sample(RunHistory& run) {
  for (LoaderHistory& l : run.loaders)
    for (LoaderWorker& w : l.by_worker) {
      Place* place = l.workers > 0 && w.pid > 0 ? place_of(w.pid, run) : nullptr;
      if (place == nullptr) continue;
      const auto text = sampler::read_file(sampler::pid_file("", w.pid, "io"), 4096);
      if (!text) continue;
      const auto read = sampler::value_of(*text, "rchar:");
      const auto storage = sampler::value_of(*text, "read_bytes:");
      if (!read || !storage) continue;
      w.io_seen = true;
      const auto add = [](int64_t& sum, std::optional<int64_t>& last, int64_t value) {
        add_bounded(sum, std::max<int64_t>(0, value - last.value_or(value)));
        last = value;
      };
      add(w.read_bytes, place->read_bytes, *read);
      add(w.storage_bytes, place->storage_bytes, *storage);
    }
}

}  // namespace stepscope::agent
