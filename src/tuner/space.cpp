#include "tuner/space.h"

#include <algorithm>
#include <set>

namespace stepscope::tuner {

bool fits(const Space& space, const LoaderSettings& settings) {
  return int64_t{settings.num_workers} * settings.prefetch_factor <= space.most_queued;
}

std::vector<int> worker_ladder(const Space& space) {
  std::set<int> ladder{space.user.num_workers};
  if (space.change_workers) {
    ladder.insert(0);
    for (int power = 1; power <= space.most_workers; power *= 2) {
      ladder.insert(power);
      if (power > 1 && power * 3 / 2 <= space.most_workers) ladder.insert(power * 3 / 2);
    }
    if (space.most_workers > 0) ladder.insert(space.most_workers);
  }
  return {ladder.begin(), ladder.end()};
}

LoaderSettings with_workers(const Space& space, int num_workers) {
  LoaderSettings settings = space.user;
  settings.num_workers = num_workers;
  settings.prefetch_factor = std::max(kPrefetch[0], space.user.prefetch_factor);
  settings.persistent_workers = space.persist;
  return clean(settings);
}

std::vector<LoaderSettings> grid(const Space& space) {
  std::vector<LoaderSettings> out{space.user};
  std::set<LoaderSettings> seen{space.user};
  std::vector<std::string> contexts{space.user.multiprocessing_context};
  contexts.insert(contexts.end(), space.contexts.begin(), space.contexts.end());
  std::set<int> prefetch(std::begin(kPrefetch), std::end(kPrefetch));
  if (space.user.prefetch_factor > 0) prefetch.insert(space.user.prefetch_factor);
  for (const int workers : worker_ladder(space))
    for (const int factor : prefetch)
      for (const bool persistent : {false, true})
        for (const bool pin : {false, true})
          for (const bool batch_wise : {false, true})
            for (const int threads : {0, 1})
              for (const std::string& context : contexts) {
                if (persistent && !space.persist) continue;
                if (pin != space.user.pin_memory && !space.pin) continue;
                if (batch_wise && !space.batch_wise) continue;
                if (threads > 0 && !space.limit_threads) continue;
                const LoaderSettings candidate = clean({.num_workers = workers,
                                                        .prefetch_factor = factor,
                                                        .persistent_workers = persistent,
                                                        .pin_memory = pin,
                                                        .batch_wise = batch_wise,
                                                        .worker_threads = threads,
                                                        .multiprocessing_context = context});
                if (fits(space, candidate) && seen.insert(candidate).second)
                  out.push_back(candidate);
              }
  return out;
}

}  // namespace stepscope::tuner
